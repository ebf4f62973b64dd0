#include "collectives/mpi/mpi_state.h"

#include <fmt/format.h>

#include <array>

#include "collectives/mpi/mpi_world.h"

namespace zeroproof::collectives {

namespace {

constexpr int kFailureTag = 0;
// Short enough that MPI sends it at once.
constexpr std::size_t kMostAnnouncedBytes = 512;

}  // namespace

MpiState::MpiState(int largest_count) : largest_count_(largest_count) {
    int is_initialized = 0;
    MPI_Initialized(&is_initialized);
    if (is_initialized != 0) throw MpiFailure("MPI runs already: one world in a process");
    int level = MPI_THREAD_SINGLE;
    demand(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    demand(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    demand(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (level < MPI_THREAD_SERIALIZED)
        fail(fmt::format("rank {}: MPI allows no other thread than the first to call it", rank_));
    demand(MPI_Comm_dup(MPI_COMM_WORLD, &failures_), "MPI_Comm_dup");
    demand(MPI_Comm_set_errhandler(failures_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm node = MPI_COMM_NULL;
    demand(MPI_Comm_split_type(failures_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
           "MPI_Comm_split_type");
    demand(MPI_Comm_size(node, &ranks_on_this_node_), "MPI_Comm_size");
    demand(MPI_Comm_free(&node), "MPI_Comm_free");
}

void MpiState::demand_sound() const {
    if (!failure_.empty()) throw MpiFailure(failure_);
    if (is_finalized_) throw MpiFailure(fmt::format("rank {}: its world has ended", rank_));
}

void MpiState::fail(const std::string& message) {
    if (failure_.empty()) failure_ = message;
    throw MpiFailure(message);
}

void MpiState::demand(int code, std::string_view what) {
    if (code != MPI_SUCCESS)
        fail(fmt::format("rank {}: {} failed: {}", rank_, what, mpi_error_text(code)));
}

void MpiState::announce_failure(const std::string& message) {
    if (failure_.empty()) failure_ = fmt::format("rank {}: {}", rank_, message);
    if (is_finalized_ || !announcing_.empty()) return;
    announcement_ = message.substr(0, kMostAnnouncedBytes);
    for (int other = 0; other < size_; ++other)
        if (other != rank_)
            MPI_Isend(announcement_.data(), static_cast<int>(announcement_.size()), MPI_CHAR, other,
                      kFailureTag, failures_, &announcing_.emplace_back(MPI_REQUEST_NULL));
    // On this node the message is there now. Over a network it takes calls of MPI, which are kept
    // few: they also go on writing into the memory of what was abandoned.
    if (ranks_on_this_node_ == size_) return;
    constexpr std::chrono::milliseconds kMost{500};
    const auto began = std::chrono::steady_clock::now();
    for (int done = 0; done == 0 && std::chrono::steady_clock::now() - began < kMost;)
        if (MPI_Testall(static_cast<int>(announcing_.size()), announcing_.data(), &done,
                        MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return;
}

void MpiState::hear_failures() {
    int is_there = 0;
    MPI_Status status;
    demand(MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, failures_, &is_there, &status), "MPI_Iprobe");
    if (is_there == 0) return;
    std::array<char, kMostAnnouncedBytes> text;
    int length = 0;
    demand(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
    demand(MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, status.MPI_SOURCE,
                    kFailureTag, failures_, MPI_STATUS_IGNORE),
           "MPI_Recv");
    fail(fmt::format("rank {}: {}", status.MPI_SOURCE,
                     std::string_view(text.data(), static_cast<std::size_t>(length))));
}

void MpiState::finalize() {
    is_finalized_ = true;
    MPI_Comm_free(&failures_);
    reductions_.free();
    MPI_Finalize();
}

}  // namespace zeroproof::collectives
