#include "harness/subjects/transport_run.h"

#include <cstring>

#include "collectives/thread_world.h"
#include "suites/conformance/transport.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;
using suites::TransportOperation;

// Memory of one rank for one operation, at the misalignment that the case asks for.
class Room {
  public:
    Room(const suites::Case& c, const TransportOperation& operation, int rank)
        : transport_(*c.transport),
          counts_(suites::transport_counts(operation, c.ranks, rank, transport_.count)) {
        const std::size_t width = memory::size_of(transport_.type);
        const auto r = static_cast<std::size_t>(rank);
        const bool shared =
            transport_.in_place && operation.op != Op::all_to_all && operation.op != Op::send;
        in_ = transport_.misalignment_bytes;
        const std::size_t in_end = in_ + counts_.in * width;
        out_ = in_end + transport_.misalignment_bytes;
        if (operation.op == Op::broadcast) out_ = in_;
        if (shared && operation.op == Op::reduce_scatter) out_ = in_ + r * counts_.out * width;
        if (shared && (operation.op == Op::all_reduce || operation.op == Op::reduce)) out_ = in_;
        if (shared && operation.op == Op::all_gather) {
            out_ = transport_.misalignment_bytes;
            in_ = out_ + r * counts_.in * width;
        }
        bytes_.resize(std::max(in_end, out_ + counts_.out * width) + 64, std::byte{0xFF});
        for (std::size_t i = 0; i < counts_.in; ++i)
            memory::store_element(transport_.type, input(), i,
                                  suites::transport_input(operation, c.ranks, rank, i));
    }

    const suites::TransportCounts& counts() const { return counts_; }
    std::byte* input() { return bytes_.data() + in_; }
    std::byte* output() { return bytes_.data() + out_; }
    std::vector<double> result() {
        std::vector<double> values(counts_.out);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = memory::load_element(transport_.type, output(), i);
        return values;
    }

  private:
    suites::TransportCase transport_;
    suites::TransportCounts counts_;
    std::size_t in_ = 0;
    std::size_t out_ = 0;
    std::vector<std::byte> bytes_;
};

std::vector<double> carry_out(const suites::Case& c, const TransportOperation& operation,
                              collectives::Communicator& group) {
    Room room(c, operation, group.rank());
    const auto [in, out] = room.counts();
    collectives::Operation request{operation.op,
                                   c.transport->type,
                                   operation.reduction,
                                   room.input(),
                                   room.output(),
                                   in,
                                   out,
                                   -1};
    if (operation.op == Op::send) {
        collectives::Operation receive = request;
        request.output = nullptr;
        request.out_elements = 0;
        request.peer = (group.rank() + 1) % group.size();
        receive.op = Op::receive;
        receive.input = nullptr;
        receive.in_elements = 0;
        receive.peer = (group.rank() + group.size() - 1) % group.size();
        collectives::Request sent = group.start(request);
        group.start(receive).wait();
        sent.wait();
        return room.result();
    }
    if (operation.op == Op::broadcast || operation.op == Op::reduce)
        request.peer = group.size() - 1;
    group.start(request).wait();
    return room.result();
}

}  // namespace

std::vector<TransportOutput> run_transport_rank(const suites::Case& c,
                                                collectives::Communicator& group) {
    std::vector<TransportOutput> outputs;
    for (const TransportOperation& operation :
         suites::transport_operations(c.transport->type, c.ranks)) {
        TransportOutput output{carry_out(c, operation, group), true};
        output.repeatable = carry_out(c, operation, group) == output.values;
        outputs.push_back(std::move(output));
    }
    return outputs;
}

std::vector<suites::TransportResult> joined_transport(
    const suites::Case& c, std::vector<std::vector<TransportOutput>> by_rank) {
    std::vector<suites::TransportResult> results;
    for (const TransportOperation& operation :
         suites::transport_operations(c.transport->type, c.ranks)) {
        const std::size_t o = results.size();
        suites::TransportResult& result = results.emplace_back();
        result.operation = operation.name;
        for (std::vector<TransportOutput>& outputs : by_rank) {
            std::vector<double>& values = result.outputs.emplace_back();
            if (o >= outputs.size()) continue;
            values = std::move(outputs[o].values);
            result.repeatable = result.repeatable && outputs[o].repeatable;
        }
    }
    return results;
}

suites::Evidence run_transport(const suites::Case& c, std::chrono::milliseconds timeout,
                               const Carrier& carrier) {
    std::vector<std::vector<TransportOutput>> by_rank(static_cast<std::size_t>(c.ranks));
    collectives::ThreadWorld world(c.ranks, timeout);
    const auto failure = world.run([&](collectives::Communicator& ranks) {
        with_carrier(carrier, ranks, [&](collectives::Communicator& group) {
            by_rank[static_cast<std::size_t>(group.rank())] = run_transport_rank(c, group);
        });
    });
    suites::Evidence evidence;
    evidence.transport = joined_transport(c, std::move(by_rank));
    if (failure) {
        evidence.status = suites::RunStatus::failed;
        evidence.message = failure->message;
    }
    return evidence;
}

}  // namespace zeroproof::harness
