#include "reference/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL  // all of the library is in its header
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "reference/checkpoint/checkpoint.h"
#include "reference/checkpoint/whole_file.h"

namespace zeroproof::reference {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

namespace {

// Five letters name the format and two digits its version.
constexpr std::string_view kBegin{"ZPPCK03\0", 8};
constexpr std::string_view kFormat = kBegin.substr(0, 5);
constexpr std::string_view kVersion = kBegin.substr(5, 2);

// Adam computes with the step as a double, in which whole numbers are exact up to here. It is also
// far from where a counter would overflow.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

class Writer {
  public:
    template <typename T>
    void scalar(T value) {
        bytes(&value, sizeof value);
    }
    void raw(std::string_view value) { bytes(value.data(), value.size()); }
    void text(const std::string& value) {
        scalar(std::uint64_t{value.size()});
        raw(value);
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
    Reader(std::string_view bytes, std::size_t at, const std::filesystem::path& path)
        : bytes_(bytes), path_(path), at_(at) {}

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
    std::string_view bytes_;
    const std::filesystem::path& path_;
    std::size_t at_;
};

std::uint64_t checksum_of(std::string_view bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

// The file less its checksum, once that is found right.
std::string_view checked(std::string_view bytes, const std::filesystem::path& path) {
    const auto refuse = [&](const std::string& why) {
        throw BadCheckpoint(fmt::format("{}: {}", path.string(), why));
    };
    // Of a file that is shorter than the name of the format, what is there.
    if (!kFormat.starts_with(bytes.substr(0, kFormat.size()))) refuse("is no checkpoint");
    std::uint64_t saved = 0;
    if (bytes.size() < kBegin.size() + sizeof saved) refuse("ends too early");
    // An older version has no checksum. What is not two digits was a version before it was damaged.
    const std::string_view version = bytes.substr(kFormat.size(), kVersion.size());
    if (version != kVersion && version.find_first_not_of("0123456789") == version.npos)
        refuse(fmt::format("is of version {}, this program reads {}", version, kVersion));
    const std::string_view body = bytes.substr(0, bytes.size() - sizeof saved);
    std::memcpy(&saved, bytes.data() + body.size(), sizeof saved);
    if (const std::uint64_t found = checksum_of(body); saved != found)
        refuse(fmt::format("has a checksum of {:016x}, its bytes have {:016x}: it is damaged",
                           saved, found));
    if (!body.starts_with(kBegin)) refuse("is of no known version");
    return body;
}

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
    writer.raw(kBegin);
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
    writer.scalar(checksum_of(writer.written()));
    write_whole(writer.written(), path);
}

CheckpointFile read_file(const std::filesystem::path& path) {
    const std::string bytes = read_whole(path);
    Reader reader(checked(bytes, path), kBegin.size(), path);
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
