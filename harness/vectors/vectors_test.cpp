// Vectors as an implementer uses them: made, run by the reference, judged with the program and
// without it, and damaged.
#include "harness/vectors/vectors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/cli/serve.h"
#include "harness/program_run.h"
#include "harness/protocol/evidence_document.h"
#include "harness/protocol/safetensors.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "harness/vectors/expected_document.h"
#include "harness/vectors/sha256.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"
#include "suites/conformance/comparison.h"
#include "suites/conformance/family.h"
#include "suites/conformance/paper_figures.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using scenarios::Json;
using suites::Case;

const fs::path kCommitted = fs::path(ZEROPROOF_SOURCE_DIR) / "suites" / "vectors";

Ran run(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, arguments);
}

std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}
void write_text(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}
Json json_of(const fs::path& file) {
    return scenarios::parse_json(text_of(file), file.string());
}
void flip_last_byte(const fs::path& file) {
    std::string text = text_of(file);
    text.back() = static_cast<char>(text.back() ^ 1);
    write_text(file, text);
}
void copy_folder(const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive);
}

// Files below a folder, without those that people have written.
std::map<std::string, std::string> tree_of(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) {
            const std::string path = fs::relative(entry.path(), folder).string();
            if (path != "README.md" && path != "ids.txt") files[path] = text_of(entry.path());
        }
    return files;
}

// Checkpoints of vectors lie where the program runs.
class WorkingFolder {
  public:
    explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
        fs::current_path(folder);
    }
    WorkingFolder(const WorkingFolder&) = delete;
    WorkingFolder& operator=(const WorkingFolder&) = delete;
    ~WorkingFolder() { fs::current_path(before_); }

  private:
    fs::path before_;
};

// What docs/vectors.md tells an implementer to do.
void let_reference_run(const fs::path& vectors, const fs::path& results) {
    const TemporaryFolder folder;
    const WorkingFolder working(folder.path());
    for (const VectorLaunch& launch : read_index(vectors).launches) {
        const fs::path cases = vectors / "cases" / launch.name;
        for (const PartOfCase& part : read_cases(cases).parts)
            if (!part.part.save_to.empty()) fs::create_directories(part.part.save_to);
        fs::create_directories(results / launch.name);
        ASSERT_EQ(serve("reference", cases, results / launch.name), 0);
    }
}

// Judges evidence by the files of a vector alone, as one does who has no harness.
class Judge {
  public:
    Judge(const fs::path& folder, const std::string& path)
        : document_(json_of(folder / path)),
          tensors_(UntrustedFile::demand((folder / path).parent_path(),
                                         document_.at("tensors").get<std::string>(), 1 << 28)) {}

    // How many values lie outside of their bounds.
    std::size_t count_wrong(const Case& c, std::size_t part, const suites::RankEvidence& rank) {
        wrong_ = 0;
        std::size_t next = 0;
        for (std::size_t row = 0; row < document_.at("snapshots").size(); ++row)
            if (document_["snapshots"][row].at("part") == part)
                judge(c, row, rank.snapshots.at(next++));
        EXPECT_EQ(next, rank.snapshots.size());
        judge_volumes(document_.at("parts").at(part), rank);
        return wrong_;
    }

  private:
    void judge(const Case& c, std::size_t row, const suites::Snapshot& snapshot) {
        const Json& expected = document_["snapshots"][row];
        check(expected.at("action") == snapshot.action);
        check(expected.at("steps_taken") == snapshot.steps_taken);
        check(expected.at("steps_skipped") == snapshot.steps_skipped);
        check(expected.at("loss_scale") == snapshot.loss_scale);
        if (expected.contains("skipped")) check(expected["skipped"] == snapshot.skipped);
        if (expected.contains("norm")) check(expected["norm"], snapshot.norm);
        if (expected.contains("clip_coefficient"))
            check(expected["clip_coefficient"], snapshot.clip_coefficient);
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            check("weights", c.parameters[p], row, 0, snapshot.weights[p]);
        for (const suites::OwnedSlice& slice : snapshot.owned) {
            const suites::ParameterCase& parameter = c.parameters[slice.parameter];
            if (!parameter.trainable) continue;
            check("master", parameter, row, slice.begin, slice.master);
            check("momentum", parameter, row, slice.begin, slice.momentum);
            check("variance", parameter, row, slice.begin, slice.variance);
            check("gradient", parameter, row, slice.begin, slice.gradient);
        }
        if (snapshot.action >= 0 && snapshot.kind == suites::ActionKind::step)
            for (const auto& [category, bytes] :
                 document_["parts"][expected["part"].get<std::size_t>()]["bytes_at_rest"].items())
                for (std::size_t i = 0; i < memory::kCategories; ++i)
                    if (name_of(static_cast<memory::Category>(i)) == category)
                        check(bytes == snapshot.live_bytes[i]);
    }

    void judge_volumes(const Json& part, const suites::RankEvidence& rank) {
        std::map<std::string, std::size_t> seen;
        const auto place = [](const auto& action, const auto& phase, const auto& traffic) {
            return fmt::format("{} {} {}", action, phase, traffic);
        };
        for (std::size_t i = 0; i < rank.collectives.size(); ++i) {
            const collectives::CollectiveRecord& record = rank.collectives[i];
            constexpr memory::Phase kOutside[] = {memory::Phase::initialise, memory::Phase::save,
                                                  memory::Phase::load, memory::Phase::read};
            if (record.traffic == collectives::Traffic::control ||
                std::ranges::count(kOutside, record.phase) > 0)
                continue;
            const bool gathers = record.op == collectives::Op::all_gather;
            const bool twice = record.op == collectives::Op::all_reduce;
            seen[place(rank.collective_actions[i], name_of(record.phase),
                       name_of(record.traffic))] +=
                (gathers ? record.out_elements : record.in_elements) * (twice ? 2 : 1);
        }
        std::map<std::string, std::size_t> expected;
        for (const Json& volume : part.at("volumes"))
            expected[place(volume.at("action").get<int>(), volume.at("phase").get<std::string>(),
                           volume.at("traffic").get<std::string>())] =
                volume.at("elements").get<std::size_t>();
        check(seen == expected);
    }

    void check(bool holds) { wrong_ += !holds; }
    void check(const Json& expected, double seen) {
        check(std::abs(seen - expected.at("value").get<double>()) <=
              expected.at("bound").get<double>());
    }
    void check(const std::string& quantity, const suites::ParameterCase& parameter, std::size_t row,
               std::size_t begin, const std::vector<float>& seen) {
        const std::size_t elements = parameter.elements();
        const Shape shape = {document_["snapshots"].size(), elements};
        const std::string name = "/" + quantity + "/" + parameter.name;
        const std::vector<float> values = tensors_.floats("expected" + name, shape);
        const std::vector<float> bounds = tensors_.floats("bound" + name, shape);
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const std::size_t at = row * elements + begin + i;
            if (std::isfinite(bounds[at]))
                check(std::abs(double{seen[i]} - double{values[at]}) <= double{bounds[at]});
        }
    }

    Json document_;
    SafetensorsReader tensors_;
    std::size_t wrong_ = 0;
};

TEST(CommittedVectors, AreWhatTheirCommandMakes) {
    const TemporaryFolder folder;
    const Ran ran = run(fmt::format("vectors export {}/v --ids {}", folder.path().string(),
                                    (kCommitted / "ids.txt").string()));
    ASSERT_EQ(ran.code, 0) << ran.output;
    const auto made = tree_of(folder.path() / "v");
    const auto committed = tree_of(kCommitted);
    std::size_t bytes = 0;
    for (const auto& [path, text] : committed) {
        bytes += text.size();
        ASSERT_TRUE(made.contains(path)) << path << " is not among what is made";
        EXPECT_TRUE(made.at(path) == text) << path << " is another; suites/vectors/README.md";
    }
    EXPECT_EQ(made.size(), committed.size()) << "files are missing in suites/vectors";
    EXPECT_LE(bytes, 300u << 10);
    // Over themselves too, and over others without leaving any of them behind.
    run(fmt::format("vectors export {}/v --filter accumulation --ranks 5 --stage 1",
                    folder.path().string()));
    run(fmt::format("vectors export {}/v --ids {}", folder.path().string(),
                    (kCommitted / "ids.txt").string()));
    EXPECT_EQ(tree_of(folder.path() / "v"), made);
}

TEST(CommittedVectors, FlagEveryClassThatCasesOnTrainingCatch) {
    const auto flags_of = [](const std::vector<Vector>& vectors) {
        std::set<std::string> flags;
        for (const Vector& vector : vectors) flags.insert(vector.flags.begin(), vector.flags.end());
        return flags;
    };
    std::vector<Vector> all;
    for (const Case& c : suites::all_cases())
        if (is_vector(c)) all.push_back(describe(c));
    const std::vector<Vector> committed = read_index(kCommitted).vectors;
    EXPECT_EQ(flags_of(committed), flags_of(all));
    for (const Vector& vector : committed) {
        EXPECT_FALSE(vector.clauses.empty()) << vector.id;
        EXPECT_FALSE(vector.sources.empty()) << vector.id;
    }
}

class VectorsOfTheReference : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = new TemporaryFolder;
        let_reference_run(kCommitted, folder_->path() / "results");
    }
    static void TearDownTestSuite() {
        delete folder_;
        folder_ = nullptr;
    }

    Ran check(const fs::path& vectors, const fs::path& results, const std::string& more = "") {
        return run(fmt::format("vectors check {} {} {}", vectors.string(), results.string(), more));
    }
    // Results to be damaged.
    fs::path own_results() {
        copy_folder(results(), own_.path() / "results");
        return own_.path() / "results";
    }
    fs::path own_vectors() {
        copy_folder(kCommitted, own_.path() / "vectors");
        return own_.path() / "vectors";
    }
    static fs::path results() { return folder_->path() / "results"; }
    // Where the results of a vector's first part lie.
    static fs::path place_of(const Vector& vector) {
        return fs::path(vector.parts[0].launch) / fmt::format("{:04}", vector.parts[0].index);
    }
    static Vector first_vector() { return read_index(kCommitted).vectors.front(); }

    TemporaryFolder own_;
    static TemporaryFolder* folder_;
};
TemporaryFolder* VectorsOfTheReference::folder_ = nullptr;

TEST_F(VectorsOfTheReference, ConformAndAreReported) {
    const std::string record = (own_.path() / "r.json").string();
    const std::string junit = (own_.path() / "r.xml").string();
    const Ran ran =
        check(kCommitted, results(), fmt::format("--json {} --junit {}", record, junit));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find(sha256_of(text_of(kCommitted / "vectors.json"))), std::string::npos);
    const Json json = json_of(record);
    EXPECT_EQ(json.at("exit_code"), 0);
    EXPECT_EQ(json.at("cases").size(), read_index(kCommitted).vectors.size());
    EXPECT_FALSE(text_of(junit).empty());
}

TEST_F(VectorsOfTheReference, LieWithinTheBoundsOfTheFilesAlone) {
    const Vectors vectors = load_vectors(kCommitted);
    std::size_t parts = 0;
    for (std::size_t v = 0; v < vectors.cases.size(); ++v) {
        const RecordedCase& recorded = vectors.cases[v];
        SCOPED_TRACE(recorded.c->id);
        Judge judge(kCommitted, vectors.index.vectors[v].expected);
        for (std::size_t p = 0; p < recorded.parts.size(); ++p, ++parts)
            for (int rank = 0; rank < recorded.parts[p].part.part.ranks; ++rank) {
                RankResult result = read_evidence(results() / recorded.parts[p].launch,
                                                  recorded.parts[p].part, rank);
                EXPECT_EQ(judge.count_wrong(*recorded.c, p, result.evidence), 0u);
                // Once something is wrong, the files tell.
                suites::Snapshot& last = result.evidence.snapshots.back();
                last.loss_scale *= 2;
                for (suites::OwnedSlice& slice : last.owned)
                    for (float& value : slice.variance) value += 1e-3f;
                EXPECT_GT(judge.count_wrong(*recorded.c, p, result.evidence), 0u);
            }
    }
    EXPECT_GT(parts, vectors.cases.size()) << "none has a reload";
}

TEST_F(VectorsOfTheReference, WithAWrongValueFail) {
    const fs::path wrong = own_results();
    // It ends with the last weight, whose exponent this changes.
    flip_last_byte(wrong / place_of(first_vector()) / "rank-0.safetensors");
    const Ran ran = check(kCommitted, wrong);
    EXPECT_EQ(ran.code, 1) << ran.output;
    EXPECT_NE(ran.output.find(first_vector().id), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("' --run COMMAND\n"), std::string::npos) << ran.output;
}

TEST_F(VectorsOfTheReference, WithoutARankAreNotThere) {
    const fs::path less = own_results();
    const fs::path missing = less / place_of(first_vector()) / "rank-1.json";
    fs::remove(missing);
    const std::string record = (own_.path() / "r.json").string();
    const Ran ran = check(kCommitted, less, "--json " + record);
    EXPECT_EQ(ran.code, 4) << ran.output;
    EXPECT_NE(text_of(record).find("results are not there: " + missing.string()),
              std::string::npos);
    const Json written = json_of(record);
    for (const Json& one : written.at("cases"))
        if (one.at("id") == first_vector().id) {
            EXPECT_EQ(one.dump().find("\"pass\""), std::string::npos) << one;
        }
}

TEST_F(VectorsOfTheReference, OfNobodyAreNotThere) {
    fs::create_directory(own_.path() / "empty");
    const std::string record = (own_.path() / "r.json").string();
    const Ran ran = check(kCommitted, own_.path() / "empty", "--json " + record);
    EXPECT_EQ(ran.code, 4) << ran.output;
    EXPECT_EQ(json_of(record).at("cases").dump().find("\"pass\""), std::string::npos);
    EXPECT_EQ(check(kCommitted, own_.path() / "nowhere").code, 2);
}

TEST_F(VectorsOfTheReference, WithAWrongShapeAreNoEvidence) {
    const fs::path wrong = own_results();
    const fs::path file = wrong / place_of(first_vector()) / "rank-0.safetensors";
    std::string text = text_of(file);
    const std::size_t at = text.find("\"shape\":[17]");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 12, "\"shape\":[ 1]");
    write_text(file, text);
    const std::string record = (own_.path() / "r.json").string();
    const Ran ran = check(kCommitted, wrong, "--json " + record);
    EXPECT_EQ(ran.code, 4) << ran.output;
    EXPECT_NE(text_of(record).find("rank-0.safetensors"), std::string::npos);
}

TEST_F(VectorsOfTheReference, OfAnotherVersionThanDeclaredAreNotJudged) {
    const fs::path declaration = own_.path() / "declaration.json";
    write_text(declaration, R"({"subject": "reference", "version": "77.0", "stages": [0, 1, 2, 3],
                                "precisions": ["fp32", "bf16", "fp16"], "buckets": true})");
    const std::string with = "--filter accumulation --declaration " + declaration.string();
    EXPECT_EQ(check(kCommitted, results(), with).code, 4);
    const Ran ran = check(kCommitted, results(), with + " --any-version");
    EXPECT_NE(ran.code, 1) << ran.output;
    EXPECT_NE(ran.code, 4) << ran.output;
}

TEST_F(VectorsOfTheReference, AreNotJudgedByVectorsThatWereChanged) {
    const fs::path changed = own_vectors();
    const Vector vector = first_vector();
    std::vector<std::string> paths = {"cases/" + vector.parts[0].launch + "/cases.json"};
    for (const VectorFile& file : vector.files) paths.push_back(file.path);
    for (const std::string& path : paths) {
        SCOPED_TRACE(path);
        const std::string text = text_of(changed / path);
        flip_last_byte(changed / path);
        const Ran flipped = check(changed, results());
        EXPECT_EQ(flipped.code, 2) << flipped.output;
        EXPECT_NE(flipped.output.find(path), std::string::npos) << flipped.output;
        write_text(changed / path, text + " ");
        EXPECT_EQ(check(changed, results()).code, 2);
        fs::remove(changed / path);
        const Ran missing = check(changed, results());
        EXPECT_EQ(missing.code, 2);
        EXPECT_NE(missing.output.find("is missing"), std::string::npos) << missing.output;
        write_text(changed / path, text);
    }
    EXPECT_EQ(check(changed, results(), "--clause GRADIENT.MEAN").code, 0);
}

TEST_F(VectorsOfTheReference, AreNotJudgedByVectorsWhoseChecksumsWereChangedToo) {
    const fs::path changed = own_vectors();
    const VectorFile tensors = first_vector().files.back();
    flip_last_byte(changed / tensors.path);
    std::string index = text_of(changed / "vectors.json");
    index.replace(index.find(tensors.sha256), 64, sha256_of(text_of(changed / tensors.path)));
    write_text(changed / "vectors.json", index);
    const Ran ran = check(changed, results());
    EXPECT_EQ(ran.code, 2) << ran.output;
    EXPECT_NE(ran.output.find(tensors.path), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find(first_vector().id), std::string::npos) << ran.output;
}

TEST_F(VectorsOfTheReference, AreNotJudgedByAnIndexThatIsNone) {
    const fs::path changed = own_vectors();
    const std::string index = text_of(changed / "vectors.json");
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = index;
        text.replace(text.find(from), from.size(), to);
        write_text(changed / "vectors.json", text);
        return check(changed, results());
    };
    EXPECT_EQ(with("zeroproof.vectors/1", "zeroproof.vectors/2").code, 2);
    EXPECT_EQ(with("\"path\":\"cases/", "\"path\":\"../cases/").code, 2);
    EXPECT_EQ(with("\"path\":\"cases/", "\"path\":\"/cases/").code, 2);
    EXPECT_EQ(with("\"flags\"", "\"flaps\"").code, 2);
    EXPECT_EQ(with("{", "").code, 2);
    EXPECT_EQ(with("\"index\":0", "\"index\":4").code, 2);
    fs::remove(changed / "vectors.json");
    EXPECT_EQ(check(changed, results()).code, 2);
}

TEST(Vectors, OfCasesThatDoNotExistAreRefused) {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "v").string();
    write_text(folder.path() / "ids", "tied/stage=9\n");
    for (const std::string& arguments :
         {std::string("--filter no-such-case"), std::string("--filter transport/"),
          fmt::format("--ids {}/ids", folder.path().string()), std::string("--ids /nowhere/ids"),
          fmt::format("--ranks 2 --ids {}/ids", folder.path().string())}) {
        const Ran ran = run(fmt::format("vectors export {} {}", out, arguments));
        EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.output;
        EXPECT_FALSE(fs::exists(out)) << arguments;
    }
}

TEST(Vectors, WhereNoneCanBeWrittenSayWhere) {
    const TemporaryFolder folder;
    write_text(folder.path() / "file", "");
    const Ran ran = run(
        fmt::format("vectors export {}/file/v --filter tied --sample 1", folder.path().string()));
    EXPECT_EQ(ran.code, 2) << ran.output;
    EXPECT_NE(ran.output.find("/file/v"), std::string::npos) << ran.output;
}

// The figures of the papers are worked out here anew: they must be those that the clauses judge by,
// and the reference fulfils these.
TEST(Vectors, ExpectWhatTheClausesPassInEveryFamily) {
    std::set<std::pair<std::string, int>> seen;
    const TemporaryFolder folder;
    const std::vector<Case> all = suites::all_cases();
    const auto reference = make_reference_subject();
    for (const Case& c : all) {
        if (!is_vector(c) || c.ranks < 2 || c.ranks > 3 ||
            !outside_declaration(c, reference->declaration()).empty() ||
            !seen.insert({c.family, c.stage}).second)
            continue;
        SCOPED_TRACE(c.id);
        write_expected(folder.path(), "one", c);
        Judge judge(folder.path(), "one.json");
        const suites::Evidence evidence = reference->run(c, std::chrono::seconds(60));
        ASSERT_EQ(evidence.status, suites::RunStatus::completed) << evidence.message;
        for (std::size_t part = 0; part < evidence.segments.size(); ++part)
            for (const suites::RankEvidence& rank : evidence.segments[part].by_rank)
                EXPECT_EQ(judge.count_wrong(c, part, rank), 0u);
    }
    EXPECT_GT(seen.size(), 100u);
}

}  // namespace
}  // namespace zeroproof::harness
