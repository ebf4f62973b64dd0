// What the tests of the MPI backend share. Each rank of a job runs all of them.
#pragma once

#include <string>

#include "collectives/mpi/mpi_world.h"

namespace zeroproof::collectives {

// The world of this process, which its main has made.
MpiWorld& mpi_world();

// Ends in one of the ways that mpi_failure_test.cpp expects: makes a world of its own.
int run_scenario(const std::string& name);

}  // namespace zeroproof::collectives
