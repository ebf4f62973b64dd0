// zeroproof verify --backend mpi
#pragma once

#include "harness/cli/verify.h"

namespace zeroproof::harness {

// What every process of an MPI job calls. Each chooses the same cases by itself; rank 0 judges,
// prints and writes. Returns the exit code, on all ranks the same; throws as `verify` does, on rank
// 0. Ends the job by itself if a case fails in such a way that ranks may be stuck.
int verify_over_mpi(const VerifyOptions& options);

}  // namespace zeroproof::harness
