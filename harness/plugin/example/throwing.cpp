// An engine that lets an exception out.
#include <zeroproof.h>

#include <stdexcept>

struct zeroproof_state {};

namespace {

zeroproof_state nothing;

zeroproof_status describe(zeroproof_description* description) {
    description->name = "throwing";
    description->stages = 15;
    description->precisions = 1;
    return ZEROPROOF_OK;
}

zeroproof_status create(const zeroproof_host*, std::int32_t, std::int32_t, const zeroproof_case*,
                        zeroproof_state** state) {
    *state = &nothing;
    return ZEROPROOF_OK;
}

void destroy(zeroproof_state*) {}

zeroproof_status micro_step(zeroproof_state*, std::int32_t) {
    throw std::runtime_error("no good");
}

zeroproof_status step(zeroproof_state*, zeroproof_step_report*) {
    return ZEROPROOF_OK;
}

}  // namespace

const zeroproof_engine* zeroproof_get_engine(std::uint32_t abi_version) {
    static zeroproof_engine engine{};
    engine.struct_size = sizeof engine;
    engine.abi_version = abi_version;
    engine.describe = describe;
    engine.create = create;
    engine.destroy = destroy;
    engine.micro_step = micro_step;
    engine.step = step;
    return &engine;
}
