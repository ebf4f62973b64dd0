#include "reference/checkpoint_file.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "reference/checkpoint.h"

namespace zeroproof::reference {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

namespace {

constexpr std::uint64_t kMagic = 0x32304B4350505AULL;  // "ZPPCK02"

// Adam computes with the step as a double, in which whole numbers are exact up to here. It is also
// far from where a counter would overflow.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

class Writer {
  public:
    template <typename T>
    void scalar(T value) {
        bytes(&value, sizeof value);
    }
    void text(const std::string& value) {
        scalar(std::uint64_t{value.size()});
        bytes(value.data(), value.size());
    }
    void floats(const std::vector<float>& values) {
        scalar(std::uint64_t{values.size()});
        bytes(values.data(), values.size() * sizeof(float));
    }
    const std::string& written() const { return written_; }

  private:
    void bytes(const void* data, std::size_t size) {
        written_.append(static_cast<const char*>(data), size);
    }
    std::string written_;
};

class Reader {
  public:
    Reader(const std::string& bytes, const std::filesystem::path& path)
        : bytes_(bytes), path_(path) {}

    template <typename T>
    T scalar() {
        T value;
        take(&value, 1, sizeof value);
        return value;
    }
    std::string text() {
        std::string value(length(1), '\0');
        take(value.data(), value.size(), 1);
        return value;
    }
    std::vector<float> floats() {
        std::vector<float> values(length(sizeof(float)));
        take(values.data(), values.size(), sizeof(float));
        return values;
    }
    std::uint64_t length(std::size_t width) {
        const auto count = scalar<std::uint64_t>();
        if (count > (bytes_.size() - at_) / width) fail("ends too early");
        return count;
    }
    void expect_end() {
        if (at_ != bytes_.size()) fail("has bytes beyond its end");
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw BadCheckpoint(fmt::format("{}: {} (at byte {})", path_.string(), why, at_));
    }

  private:
    void take(void* target, std::size_t count, std::size_t width) {
        if (count > (bytes_.size() - at_) / width) fail("ends too early");
        if (count > 0) std::memcpy(target, bytes_.data() + at_, count * width);
        at_ += count * width;
    }
    const std::string& bytes_;
    const std::filesystem::path& path_;
    std::size_t at_ = 0;
};

void require_in_range(const CheckpointFile& file, const Reader& reader) {
    if (file.ranks < 1 || file.rank >= file.ranks)
        reader.fail(fmt::format("says that it is rank {} of {}", file.rank, file.ranks));
    const Progress& progress = file.progress;
    for (const std::int64_t steps : {progress.steps_taken, progress.steps_skipped})
        if (steps < 0 || steps > kMostSteps)
            reader.fail(fmt::format("has a count of {} steps", steps));
    const LossScale::State& scale = progress.loss_scale;
    if (!std::isfinite(scale.value) || scale.value <= 0)
        reader.fail(fmt::format("has a loss scale of {}", scale.value));
    // The next step adds 1 to the counter.
    if (scale.steps_since_overflow < 0 ||
        scale.steps_since_overflow == std::numeric_limits<int>::max() || scale.overflows_left < 0)
        reader.fail(fmt::format("has loss scale counters of {} and {}", scale.steps_since_overflow,
                                scale.overflows_left));
}

void require_in_range(const SavedSlice& slice, const Reader& reader) {
    if (slice.momentum.size() != slice.variance.size() ||
        (!slice.momentum.empty() && slice.momentum.size() != slice.master.size()))
        reader.fail("has moments and masters of different lengths");
    if (slice.begin > slice.parameter_elements ||
        slice.master.size() > slice.parameter_elements - slice.begin)
        reader.fail(fmt::format("has elements of '{}' beyond its end", slice.parameter));
}

}  // namespace

void write_file(const CheckpointFile& file, const std::filesystem::path& path) {
    Writer writer;
    writer.scalar(kMagic);
    writer.scalar(file.rank);
    writer.scalar(file.ranks);
    writer.scalar(file.progress.steps_taken);
    writer.scalar(file.progress.steps_skipped);
    writer.scalar(file.progress.loss_scale.value);
    writer.scalar(std::int32_t{file.progress.loss_scale.steps_since_overflow});
    writer.scalar(std::int32_t{file.progress.loss_scale.overflows_left});
    writer.scalar(std::uint64_t{file.slices.size()});
    for (const SavedSlice& slice : file.slices) {
        writer.text(slice.parameter);
        writer.scalar(slice.parameter_elements);
        writer.scalar(slice.begin);
        writer.floats(slice.master);
        writer.floats(slice.momentum);
        writer.floats(slice.variance);
    }
    std::filesystem::path unfinished = path;
    unfinished += ".unfinished";
    {
        std::ofstream stream(unfinished, std::ios::binary);
        stream.write(writer.written().data(),
                     static_cast<std::streamsize>(writer.written().size()));
        if (!stream.flush())
            throw BadCheckpoint(fmt::format("{}: cannot be written", unfinished.string()));
    }
    std::filesystem::rename(unfinished, path);
}

CheckpointFile read_file(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw BadCheckpoint(fmt::format("{}: cannot be read", path.string()));
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    Reader reader(bytes, path);
    if (reader.scalar<std::uint64_t>() != kMagic) reader.fail("is no checkpoint of this version");
    CheckpointFile file;
    file.rank = reader.scalar<std::uint32_t>();
    file.ranks = reader.scalar<std::uint32_t>();
    file.progress.steps_taken = reader.scalar<std::int64_t>();
    file.progress.steps_skipped = reader.scalar<std::int64_t>();
    file.progress.loss_scale.value = reader.scalar<float>();
    file.progress.loss_scale.steps_since_overflow = reader.scalar<std::int32_t>();
    file.progress.loss_scale.overflows_left = reader.scalar<std::int32_t>();
    require_in_range(file, reader);
    const std::uint64_t slices = reader.length(1);
    for (std::uint64_t i = 0; i < slices; ++i) {
        SavedSlice slice;
        slice.parameter = reader.text();
        slice.parameter_elements = reader.scalar<std::uint64_t>();
        slice.begin = reader.scalar<std::uint64_t>();
        slice.master = reader.floats();
        slice.momentum = reader.floats();
        slice.variance = reader.floats();
        require_in_range(slice, reader);
        file.slices.push_back(std::move(slice));
    }
    reader.expect_end();
    return file;
}

}  // namespace zeroproof::reference
