// How a process finds out that a launcher of MPI jobs has started it.
#include <cstdlib>

#include "collectives/mpi/mpi_world.h"

namespace zeroproof::collectives {

bool MpiWorld::was_launched() {
    // Of Open MPI's mpirun; of MPICH's mpiexec and srun --mpi=pmi2; of srun --mpi=pmix.
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"})
        if (std::getenv(variable) != nullptr) return true;
    return false;
}

}  // namespace zeroproof::collectives
