// The actions of a random case.
#pragma once

#include "harness/programs/generator.h"
#include "harness/programs/random.h"

namespace zeroproof::harness {

// Fills the program of a case that has all else but injections and resumption, which depend on it;
// makes these too. Bounds for clipping are powers of two and may still lie anywhere about the norm.
void make_program(const ProgramSpace& space, Random& random, Case& c);

}  // namespace zeroproof::harness
