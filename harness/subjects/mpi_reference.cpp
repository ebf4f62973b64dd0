#include "harness/subjects/mpi_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "harness/protocol/joined_evidence.h"
#include "harness/subjects/reference_rank.h"
#include "harness/subjects/reference_subject.h"
#include "harness/subjects/transport_run.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::Json;
using suites::Case;
using suites::Evidence;
using suites::RunStatus;

// The cases and their twins, by the number that ranks call them by.
std::vector<const Case*> with_twins(const std::vector<const Case*>& cases) {
    std::vector<const Case*> all;
    for (const Case* c : cases) {
        all.push_back(c);
        for (const Case& twin : c->twin) all.push_back(&twin);
    }
    return all;
}

// What this rank does in a part. Throws what the rank throws, but for a refusal.
RankResult run_rank(const PartOfCase& part, int rank, collectives::Communicator& group) {
    RankResult result;
    result.observed = suites::Observations::all();
    ReferenceRank reference(*part.c, part.part, rank);
    try {
        reference.run(group);
        result.evidence = reference.take_evidence();
    } catch (const reference::Unsupported& unsupported) {
        result.status = RunStatus::rejected;
        result.message = unsupported.what();
    }
    return result;
}

// The files of the evidence document, one behind the other, each behind its length.
constexpr std::string_view kEndings[] = {"safetensors", "json"};

fs::path file_of(const TemporaryFolder& folder, const PartOfCase& part, int rank,
                 std::string_view ending) {
    return folder.path() / folder_of(part) / fmt::format("rank-{}.{}", rank, ending);
}

std::string packed(const PartOfCase& part, int rank, const RankResult& result) {
    const TemporaryFolder folder;
    write_evidence(folder.path(), part, rank, result);
    std::string text;
    for (const std::string_view ending : kEndings) {
        std::ifstream file(file_of(folder, part, rank, ending), std::ios::binary);
        const std::string whole{std::istreambuf_iterator<char>(file), {}};
        text += fmt::format("{:020}", whole.size()) + whole;
    }
    return text;
}

RankResult unpacked(const PartOfCase& part, int rank, std::string_view text) {
    constexpr std::size_t kDigits = 20;
    const TemporaryFolder folder;
    fs::create_directory(folder.path() / folder_of(part));
    for (const std::string_view ending : kEndings) {
        const std::size_t size = std::stoull(std::string(text.substr(0, kDigits)));
        std::ofstream(file_of(folder, part, rank, ending), std::ios::binary)
            << text.substr(kDigits, size);
        text.remove_prefix(kDigits + size);
    }
    return read_evidence(folder.path(), part, rank);
}

// Numbers, as they lie in memory: for each operation whether it was repeatable, how many values it
// gave, and these.
std::string packed(const std::vector<TransportOutput>& outputs) {
    std::vector<double> numbers;
    for (const TransportOutput& output : outputs) {
        numbers.push_back(output.repeatable ? 1 : 0);
        numbers.push_back(static_cast<double>(output.values.size()));
        numbers.insert(numbers.end(), output.values.begin(), output.values.end());
    }
    std::string text(numbers.size() * sizeof(double), '\0');
    std::memcpy(text.data(), numbers.data(), text.size());
    return text;
}

std::vector<TransportOutput> unpacked_outputs(std::string_view text) {
    std::vector<double> numbers(text.size() / sizeof(double));
    std::memcpy(numbers.data(), text.data(), text.size());
    std::vector<TransportOutput> outputs;
    for (auto at = numbers.begin(); at != numbers.end();) {
        TransportOutput& output = outputs.emplace_back();
        output.repeatable = *at++ != 0;
        const auto count = static_cast<std::ptrdiff_t>(*at++);
        output.values.assign(at, at + count);
        at += count;
    }
    return outputs;
}

}  // namespace

suites::Declaration mpi_reference_declaration(int ranks) {
    suites::Declaration declaration = make_reference_subject()->declaration();
    declaration.name = fmt::format("the reference over {}", collectives::MpiWorld::library());
    declaration.most_ranks = ranks;
    // The evidence document does not carry the gradients that a rank made of a batch.
    declaration.trains_transformers = false;
    declaration.not_promised["TRANSPORT.ACCUMULATION"] =
        "MPI hands partial sums from rank to rank in the type of the operation, so that those of a "
        "16-bit type are rounded at each hop";
    return declaration;
}

int ranks_needed(const Case& c) {
    int ranks = std::max(c.ranks, c.resume_ranks);
    for (const Case& twin : c.twin) ranks = std::max(ranks, ranks_needed(twin));
    return ranks;
}

MpiReference::MpiReference(MpiJob& job, const std::vector<const Case*>& cases)
    : job_(job), declaration_(mpi_reference_declaration(job.ranks())) {
    for (const Case* c : with_twins(cases)) places_.emplace(c, places_.size());
}

Evidence MpiReference::run(const Case& c, std::chrono::milliseconds) {
    if (const std::string outside = outside_declaration(c, declaration_); !outside.empty())
        return without_run(RunStatus::rejected, fmt::format("the reference has no {}", outside));
    try {
        return c.transport ? run_transport_case(c) : run_program(c);
    } catch (const collectives::MpiFailure& failure) {
        has_failed_ = true;
        return without_run(RunStatus::failed, failure.what());
    } catch (const scenarios::BadInput& error) {
        return without_run(RunStatus::adapter_failed, error.what());
    } catch (const std::exception& error) {
        has_failed_ = true;
        return without_run(RunStatus::failed, fmt::format("rank 0 threw: {}", error.what()));
    }
}

void MpiReference::run_batch(const std::vector<const Case*>& cases,
                             std::chrono::milliseconds timeout, const Deliver& deliver) {
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (!deliver(i, run(*cases[i], timeout)) || has_failed_) return;
}

Evidence MpiReference::run_program(const Case& c) {
    Evidence evidence;
    std::optional<TemporaryFolder> folder;  // on a file system that all ranks share
    if (saves(c)) folder.emplace();
    const fs::path place = folder ? folder->path() : fs::path();
    std::size_t number = 0;
    for (ProgramPart& program : parts_of(c, place)) {
        job_.broadcast(
            Json{{"case", places_.at(&c)}, {"part", number++}, {"folder", place.string()}}.dump());
        const PartOfCase part{&c, std::move(program), 0};
        std::vector<RankResult> results;
        collectives::Communicator* const group = job_.first(part.part.ranks);
        results.push_back(run_rank(part, 0, *group));
        const std::vector<std::string> texts = job_.gather("", part.part.ranks);
        for (int rank = 1; rank < part.part.ranks; ++rank)
            results.push_back(unpacked(part, rank, texts[static_cast<std::size_t>(rank)]));
        Evidence seen = joined(part, std::move(results));
        evidence.status = seen.status;
        evidence.message = std::move(seen.message);
        evidence.observed.keep_common(seen.observed);
        for (suites::Segment& segment : seen.segments)
            evidence.segments.push_back(std::move(segment));
        if (evidence.status != RunStatus::completed) break;
    }
    return evidence;
}

Evidence MpiReference::run_transport_case(const Case& c) {
    job_.broadcast(Json{{"case", places_.at(&c)}, {"part", 0}, {"folder", ""}}.dump());
    std::vector<std::vector<TransportOutput>> by_rank;
    by_rank.push_back(run_transport_rank(c, *job_.first(c.ranks)));
    const std::vector<std::string> texts = job_.gather("", c.ranks);
    for (std::size_t rank = 1; rank < texts.size(); ++rank)
        by_rank.push_back(unpacked_outputs(texts[rank]));
    Evidence evidence;
    evidence.transport = joined_transport(c, std::move(by_rank));
    return evidence;
}

void end_mpi_reference(MpiJob& job, int code) {
    job.broadcast(Json{{"end", code}}.dump());
}

int serve_mpi_reference(MpiJob& job, const std::vector<const Case*>& cases) {
    const std::vector<const Case*> all = with_twins(cases);
    try {
        for (;;) {
            const Json command = Json::parse(job.broadcast(""));
            if (command.contains("end")) return command["end"].get<int>();
            const Case& c = *all.at(command["case"].get<std::size_t>());
            if (c.transport) {
                collectives::Communicator* const group = job.first(c.ranks);
                if (group != nullptr) job.gather(packed(run_transport_rank(c, *group)), c.ranks);
                continue;
            }
            const PartOfCase part{&c,
                                  parts_of(c, command["folder"].get<std::string>())
                                      .at(command["part"].get<std::size_t>()),
                                  0};
            collectives::Communicator* const group = job.first(part.part.ranks);
            if (group == nullptr) continue;
            const RankResult result = run_rank(part, job.rank(), *group);
            job.gather(packed(part, job.rank(), result), part.part.ranks);
        }
    } catch (const std::exception& error) {
        job.give_up(error.what());
    }
}

}  // namespace zeroproof::harness
