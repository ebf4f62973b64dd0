// The two ways in which ZeRO-DP lays parameters out, and how weights start.
#pragma once

#include <vector>

#include "reference/flat_parameters.h"
#include "reference/options.h"

namespace zeroproof::reference {

// All trainable, or all frozen, parameters in one range, in the order of registration.
FlatParameters one_flat(const Model& model, bool trainable, std::size_t owners,
                        std::size_t bucket_elements);

// A range for each set of units that use the same parameters, so that gathering a unit moves
// nothing which another unit needs: one a unit, and one more for what several units share.
std::vector<FlatParameters> flats_by_use(const Model& model, bool trainable, std::size_t owners,
                                         std::size_t bucket_elements);

// Rounds the model's initial weights, from element `begin` of the parameter, into `target`.
void fill_initial_weights(const Model& model, std::size_t parameter, std::size_t begin,
                          Tensor target);

}  // namespace zeroproof::reference
