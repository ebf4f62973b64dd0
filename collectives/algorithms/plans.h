// The schedules that algorithms.cpp lists. Each is told at its definition.
#pragma once

#include "collectives/algorithms/schedule.h"

namespace zeroproof::collectives::plans {

// ring.cpp
Schedule ring_reduce_scatter(const Shape& shape, int rank);
Schedule ring_all_gather(const Shape& shape, int rank);
Schedule ring_all_reduce(const Shape& shape, int rank);

// recursive.cpp
Schedule recursive_halving_reduce_scatter(const Shape& shape, int rank);
Schedule recursive_doubling_all_gather(const Shape& shape, int rank);
Schedule halving_doubling_all_reduce(const Shape& shape, int rank);
Schedule recursive_doubling_all_reduce(const Shape& shape, int rank);

// hierarchical.cpp
Schedule hierarchical_reduce_scatter(const Shape& shape, int rank);
Schedule hierarchical_all_gather(const Shape& shape, int rank);
Schedule hierarchical_all_reduce(const Shape& shape, int rank);

// binomial.cpp
Schedule binomial_broadcast(const Shape& shape, int rank);
Schedule binomial_reduce(const Shape& shape, int rank);

// pairwise.cpp
Schedule pairwise_all_to_all(const Shape& shape, int rank);

}  // namespace zeroproof::collectives::plans
