#include "collectives/record.h"

namespace zeroproof::collectives {

std::string_view name_of(Traffic traffic) {
    constexpr std::string_view names[kTraffics] = {"gradient", "parameter", "control", "activation",
                                                   "checkpoint"};
    return names[static_cast<std::size_t>(traffic)];
}

std::size_t nominal_elements(const CollectiveRecord& record) {
    if (record.group.size() == 1) return 0;
    switch (record.op) {
        case Op::all_reduce: return 2 * record.in_elements;
        case Op::reduce_scatter:
        case Op::broadcast:
        case Op::reduce:
        case Op::all_to_all:
        case Op::send: return record.in_elements;
        case Op::all_gather: return record.out_elements;
        case Op::receive: break;
    }
    return 0;
}

std::size_t sent_elements_times_ranks(const CollectiveRecord& record) {
    const std::size_t ranks = record.group.size();
    return nominal_elements(record) * (record.op == Op::send ? ranks : ranks - 1);
}

}  // namespace zeroproof::collectives
