#include "suites/conformance/evidence.h"

namespace zeroproof::suites {

std::string_view name_of(Observation observation) {
    constexpr std::string_view names[kObservations] = {
        "ownership",  "gradient",   "momentum",         "variance",  "master",     "weights",
        "echoes",     "norm",       "clip_coefficient", "skips",     "loss_scale", "steps",
        "live_bytes", "peak_bytes", "collectives",      "in_flight", "races"};
    return names[static_cast<std::size_t>(observation)];
}

}  // namespace zeroproof::suites
