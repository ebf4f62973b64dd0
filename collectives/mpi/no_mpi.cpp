// In place of the MPI backend, in a build without MPI.
#include <cstdlib>

#include "collectives/mpi/mpi_world.h"

namespace zeroproof::collectives {

namespace {

[[noreturn]] void refuse() {
    throw MpiFailure("this build has no MPI: install libopenmpi-dev and configure again");
}

}  // namespace

class MpiState {};

bool MpiWorld::is_built_in() {
    return false;
}

std::string MpiWorld::library() {
    return {};
}

MpiWorld::MpiWorld(std::chrono::milliseconds, int) {
    refuse();
}

MpiWorld::~MpiWorld() = default;

Communicator& MpiWorld::world() {
    refuse();
}

std::unique_ptr<Communicator> MpiWorld::duplicate(std::chrono::milliseconds) {
    refuse();
}

void MpiWorld::wait_as(Waiting) {}

int MpiWorld::ranks_on_this_node() const {
    refuse();
}

void MpiWorld::announce_failure(const std::string&) {
    refuse();
}

void MpiWorld::abort(int code) {
    std::_Exit(code);
}

}  // namespace zeroproof::collectives
