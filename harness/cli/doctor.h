// zeroproof doctor: what is on this machine, what is missing, and how to get it.
#pragma once

namespace zeroproof::harness {

// Returns the exit code: 0 if all that verification and mutants need is there.
int doctor();

}  // namespace zeroproof::harness
