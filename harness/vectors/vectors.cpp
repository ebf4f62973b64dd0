#include "harness/vectors/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/subjects/program_part.h"
#include "harness/temporary_folder.h"
#include "harness/vectors/expected_document.h"
#include "harness/version.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;
using suites::Case;

constexpr std::size_t kMostParts = 10'000;  // of a launch, as an index has four digits

// Gathers parts into launches: all that run on as many ranks, those that load apart from those that
// begin, since what they load is saved by a launch before.
class Launches {
  public:
    // Places that the parts of the case get.
    std::vector<VectorPart> add(const Case& c, const std::string& number) {
        const TemporaryFolder unused;  // parts_of makes folders, and these have no place yet
        std::vector<VectorPart> places;
        for (ProgramPart part : parts_of(c, unused.path())) {
            // Relative to where the program runs, as vectors lie anywhere.
            const fs::path saved = fs::path("checkpoints") / number;
            if (!part.save_to.empty()) part.save_to = saved;
            if (!part.load_from.empty()) part.load_from = saved;
            part.between.clear();
            const bool loads = !part.load_from.empty();
            std::vector<PartOfCase>& launch = launches_[{loads, part.ranks}];
            if (launch.size() == kMostParts)
                throw BadInput(
                    fmt::format("more than {} cases on {} ranks; choose fewer with "
                                "--filter, --stage, --ranks or --sample",
                                kMostParts, part.ranks));
            places.push_back({name_of({loads, part.ranks}), launch.size()});
            launch.push_back({&c, std::move(part), launch.size()});
        }
        return places;
    }

    std::vector<VectorLaunch> write(const fs::path& folder) const {
        std::vector<VectorLaunch> written;
        for (const auto& [key, parts] : launches_) {
            const std::string path = fmt::format("cases/{}", name_of(key));
            std::error_code error;
            fs::create_directories(folder / path, error);  // if not, writing says so
            write_cases(folder / path, key.ranks, parts);
            written.push_back(
                {name_of(key), key.ranks, measure_file(folder, path + "/cases.json")});
        }
        return written;
    }

  private:
    struct Key {
        bool loads;
        int ranks;
        auto operator<=>(const Key&) const = default;
    };
    static std::string name_of(const Key& key) {
        return fmt::format("ranks-{}{}", key.ranks, key.loads ? "-loading" : "");
    }

    std::map<Key, std::vector<PartOfCase>> launches_;
};

std::string tensors_of(const VectorPart& part) {
    return fmt::format("cases/{}/{:04}.safetensors", part.launch, part.index);
}

// Those of an export before: what it did not list is not ours to remove.
void remove_vectors(const fs::path& folder) {
    if (!fs::exists(folder / kIndexFile)) return;
    const VectorIndex index = read_index(folder);
    const auto remove = [&](const std::string& path) {
        std::error_code error;
        if (!fs::remove(folder / path, error) && error)
            throw Unwritable(
                fmt::format("cannot remove {}: {}", (folder / path).string(), error.message()));
    };
    remove(std::string(kIndexFile));  // first: what is left without it are no vectors
    for (const VectorLaunch& launch : index.launches) remove(launch.cases.path);
    for (const Vector& vector : index.vectors)
        for (const VectorFile& file : vector.files) remove(file.path);
    // Folders that have become empty.
    std::error_code unused;
    for (const VectorLaunch& launch : index.launches)
        fs::remove(folder / "cases" / launch.name, unused);
    fs::remove(folder / "cases", unused);
    fs::remove(folder / "expected", unused);
}

// The case of the parts, put together; reads the parts of a twin as well.
class CaseFinder {
  public:
    CaseFinder(std::map<std::string, CaseDocument>& launches, std::string file)
        : launches_(launches), file_(std::move(file)) {}

    RecordedCase find(const Vector& vector) {
        const auto [c, parts] = find(vector.id, vector.parts);
        RecordedCase recorded{c, parts, {}};
        if (vector.twin) {
            const std::string id = vector.id + " (twin)";
            auto [twin, twin_parts] = find(id, vector.twin->parts);
            c->twin_of = vector.twin->differs_in;
            c->twin = {*twin};
            recorded.twin_parts = std::move(twin_parts);
        }
        return recorded;
    }

  private:
    std::pair<Case*, std::vector<RecordedPart>> find(const std::string& id,
                                                     const std::vector<VectorPart>& places) {
        Case* c = nullptr;
        std::vector<RecordedPart> parts;
        for (const VectorPart& place : places) {
            const auto launch = launches_.find(place.launch);
            if (launch == launches_.end())
                refuse(id, fmt::format("there is no launch {}", place.launch));
            CaseDocument& document = launch->second;
            const auto part = std::ranges::find(document.parts, place.index, &PartOfCase::index);
            if (part == document.parts.end() || part->c->id != id)
                refuse(id, fmt::format("launch {} has it not at {}", place.launch, place.index));
            if (c == nullptr)
                c = &document.cases[static_cast<std::size_t>(part - document.parts.begin())];
            parts.push_back({place.launch, *part});
        }
        if (parts.size() != (c->has_reload() ? 2u : 1u))
            refuse(id, fmt::format("{} of its parts are listed", parts.size()));
        return {c, parts};
    }

    [[noreturn]] void refuse(const std::string& id, const std::string& why) const {
        throw BadInput(fmt::format("{}: vector '{}': {}", file_, id, why));
    }

    std::map<std::string, CaseDocument>& launches_;
    std::string file_;
};

// Checksums tell of an accident. That it is the oracle's word, and not somebody's who has changed
// the checksums too, only making it again tells.
void check_expected(const fs::path& folder, const Vectors& vectors) {
    const TemporaryFolder again;
    std::vector<const Case*> cases;
    for (const RecordedCase& recorded : vectors.cases) cases.push_back(recorded.c);
    const VectorIndex made = export_vectors(again.path(), cases);
    const auto refuse = [&](const std::string& path, const std::string& whose) {
        throw BadInput(fmt::format(
            "{}: is not what this program, {}, writes for {}; {} says that {} made it. Export the "
            "vectors anew",
            (folder / path).string(), kVersion, whose, kIndexFile, vectors.index.version));
    };
    for (std::size_t v = 0; v < made.vectors.size(); ++v) {
        const Vector& ours = made.vectors[v];
        const Vector& theirs = vectors.index.vectors[v];
        for (const VectorFile& file : ours.files)
            if (std::ranges::find(theirs.files, file) == theirs.files.end())
                refuse(file.path, fmt::format("vector '{}'", ours.id));
    }
    for (const VectorLaunch& launch : made.launches)
        if (std::ranges::find(vectors.index.launches, launch.cases, &VectorLaunch::cases) ==
            vectors.index.launches.end())
            refuse(launch.cases.path, fmt::format("launch {}", launch.name));
}

}  // namespace

bool is_vector(const Case& c) {
    return suites::feeds_gradients(c);
}

VectorIndex export_vectors(const fs::path& folder, const std::vector<const Case*>& cases) {
    std::error_code error;
    fs::create_directories(folder / "expected", error);  // if not, writing says so
    remove_vectors(folder);
    fs::create_directories(folder / "expected", error);

    VectorIndex index;
    index.version = kVersion;
    Launches launches;
    for (const Case* c : cases) {
        Vector& vector = index.vectors.emplace_back(describe(*c));
        const std::string number = fmt::format("{:04}", index.vectors.size() - 1);
        vector.parts = launches.add(*c, number);
        if (!c->twin.empty())
            vector.twin = {c->twin_of, launches.add(c->twin.front(), number + "-twin")};
        vector.expected = fmt::format("expected/{}.json", number);
        write_expected(folder / "expected", number, *c);
    }
    index.launches = launches.write(folder);
    for (std::size_t v = 0; v < index.vectors.size(); ++v) {
        Vector& vector = index.vectors[v];
        const auto add = [&](const std::string& path) {
            vector.files.push_back(measure_file(folder, path));
        };
        for (const VectorPart& part : vector.parts) add(tensors_of(part));
        if (vector.twin)
            for (const VectorPart& part : vector.twin->parts) add(tensors_of(part));
        add(vector.expected);
        add(fmt::format("expected/{:04}.safetensors", v));
    }
    write_whole(folder / kIndexFile, to_text(index));
    return index;
}

Vectors load_vectors(const fs::path& folder) {
    Vectors vectors;
    vectors.index = read_index(folder);
    check_files(folder, vectors.index);
    for (const VectorLaunch& launch : vectors.index.launches) {
        CaseDocument& document =
            vectors.launches.emplace(launch.name, read_cases(folder / "cases" / launch.name))
                .first->second;
        if (document.ranks != launch.ranks)
            throw BadInput(fmt::format("{}: launch {} is on {} ranks, its cases on {}",
                                       (folder / kIndexFile).string(), launch.name, launch.ranks,
                                       document.ranks));
    }
    CaseFinder finder(vectors.launches, (folder / kIndexFile).string());
    for (const Vector& vector : vectors.index.vectors) vectors.cases.push_back(finder.find(vector));
    check_expected(folder, vectors);
    return vectors;
}

}  // namespace zeroproof::harness
