#include "collectives/mpi/mpi_world.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "collectives/mpi/mpi_communicator.h"

namespace zeroproof::collectives {

bool MpiWorld::is_built_in() {
    return true;
}

std::string MpiWorld::library() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "MPI";
    std::string name(text.data(), static_cast<std::size_t>(length));
    // "Open MPI v4.1.4, package: ..."; what others say ends with the line.
    name = name.substr(0, name.find_first_of(",\n"));
    if (const auto v = name.find(" v"); v != std::string::npos) name.erase(v + 1, 1);
    return name;
}

MpiWorld::MpiWorld(std::chrono::milliseconds timeout, int largest_count)
    : state_(std::make_shared<MpiState>(largest_count)),
      world_(MpiCommunicator::of_world(state_, timeout)) {}

MpiWorld::~MpiWorld() {
    world_.reset();
    if (state_->is_sound() && std::uncaught_exceptions() == 0) state_->finalize();
}

Communicator& MpiWorld::world() {
    return *world_;
}

std::unique_ptr<Communicator> MpiWorld::duplicate(std::chrono::milliseconds timeout) {
    return MpiCommunicator::of_world(state_, timeout);
}

void MpiWorld::wait_as(Waiting waiting) {
    state_->wait_as(waiting);
}

int MpiWorld::ranks_on_this_node() const {
    return state_->ranks_on_this_node();
}

void MpiWorld::announce_failure(const std::string& message) {
    state_->announce_failure(message);
}

void MpiWorld::abort(int code) {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
}

}  // namespace zeroproof::collectives
