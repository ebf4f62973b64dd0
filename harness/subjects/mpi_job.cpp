#include "harness/subjects/mpi_job.h"

#include <fmt/format.h>

#include <cstdint>
#include <thread>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using collectives::DType;
using collectives::Op;
using collectives::Operation;

constexpr int kSubjectFailedToRun = 4;

std::byte* bytes_of(std::string& text) {
    return reinterpret_cast<std::byte*>(text.data());
}

Operation send(const std::byte* data, std::size_t bytes, int to) {
    return {Op::send, DType::int8, collectives::Reduction::none, data, nullptr, bytes, 0, to};
}

Operation receive(std::byte* data, std::size_t bytes, int from) {
    return {Op::receive, DType::int8, collectives::Reduction::none, nullptr, data, 0, bytes, from};
}

}  // namespace

MpiJob::MpiJob(std::chrono::milliseconds timeout) : timeout_(timeout) {
    try {
        mpi_ = std::make_unique<collectives::MpiWorld>(timeout);
    } catch (const collectives::MpiFailure& failure) {
        throw scenarios::BadInput(failure.what());
    }
    // The others wait until rank 0 has judged. It waits for them while they end a part that it has
    // ended itself: each may still wait for another, and for longer only if it computes without
    // end.
    messages_ = mpi_->duplicate(rank() == 0 ? 3 * timeout : std::chrono::hours(24 * 365));
}

collectives::Communicator* MpiJob::first(int ranks) {
    if (ranks == mpi_->world().size()) return &mpi_->world();
    if (!first_.contains(ranks))
        first_[ranks] = mpi_->world().split(rank() < ranks ? 0 : -1, rank());
    return first_[ranks].get();
}

std::string MpiJob::broadcast(std::string text) {
    std::uint64_t size = text.size();
    messages_->broadcast(reinterpret_cast<std::byte*>(&size), 1, DType::int64, 0).wait();
    text.resize(size);
    messages_->broadcast(bytes_of(text), size, DType::int8, 0).wait();
    return text;
}

std::vector<std::string> MpiJob::gather(const std::string& text, int ranks) {
    constexpr std::size_t kWidth = sizeof(std::uint64_t);
    if (rank() > 0) {
        const std::uint64_t size = text.size();
        const auto* const data = reinterpret_cast<const std::byte*>(text.data());
        messages_->start(send(reinterpret_cast<const std::byte*>(&size), kWidth, 0)).wait();
        messages_->start(send(data, size, 0)).wait();
        return {};
    }
    std::vector<std::string> texts{text};
    for (int other = 1; other < ranks; ++other) {
        std::uint64_t size = 0;
        messages_->start(receive(reinterpret_cast<std::byte*>(&size), kWidth, other)).wait();
        std::string& theirs = texts.emplace_back(size, '\0');
        messages_->start(receive(bytes_of(theirs), size, other)).wait();
    }
    return texts;
}

void MpiJob::give_up(const std::string& message) {
    mpi_->announce_failure(message);
    // Without a call of MPI, which might write into memory that the failure has freed. Rank 0 ends
    // the job long before, unless it computes without end.
    std::this_thread::sleep_for(6 * timeout_);
    fmt::print(stderr, "zeroproof: rank {}: {}; and rank 0 does not end the job\n", rank(),
               message);
    mpi_->abort(kSubjectFailedToRun);
}

}  // namespace zeroproof::harness
