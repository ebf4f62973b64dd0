// A backend of torch.distributed that writes down what goes through it to another one, and makes
// races certain on request.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "flight.h"
#include "recorder.h"
#include "work.h"

namespace zeroproof::observer {
namespace {

namespace py = pybind11;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using Started = c10::intrusive_ptr<c10d::Work>;

// The names of the protocol; what it has no name for keeps torch's.
std::string name_of(at::ScalarType type) {
    switch (type) {
        case at::kFloat: return "fp32";
        case at::kHalf: return "fp16";
        case at::kBFloat16: return "bf16";
        case at::kDouble: return "fp64";
        case at::kChar: return "int8";
        case at::kInt: return "int32";
        case at::kLong: return "int64";
        case at::kByte: return "uint8";
        case at::kBool: return "bool";
        default: return c10::toString(type);
    }
}

std::string name_of(const c10d::ReduceOp& reduction) {
    switch (reduction) {
        case c10d::ReduceOp::SUM: return "sum";
        case c10d::ReduceOp::AVG: return "mean";
        case c10d::ReduceOp::PRODUCT: return "product";
        case c10d::ReduceOp::MIN: return "min";
        case c10d::ReduceOp::MAX: return "max";
        case c10d::ReduceOp::BAND: return "bitwise_and";
        case c10d::ReduceOp::BOR: return "bitwise_or";
        case c10d::ReduceOp::BXOR: return "bitwise_xor";
        case c10d::ReduceOp::PREMUL_SUM: return "scaled_sum";
        default: return "unused";
    }
}

int64_t elements_of(const Tensors& tensors) {
    return std::accumulate(
        tensors.begin(), tensors.end(), int64_t{0},
        [](int64_t sum, const at::Tensor& tensor) { return sum + tensor.numel(); });
}

// One call: note() its operations, get from read(), write() and update() the tensors to start it
// with, which belong to the operation noted last, and let it fly() once it is started.
class Call {
  public:
    Call(const std::vector<int64_t>& group, std::atomic<uint64_t>& numbers, std::string op,
         std::string reduction = "none", int64_t peer = -1)
        : group_(group),
          numbers_(numbers),
          op_(std::move(op)),
          reduction_(std::move(reduction)),
          peer_(peer) {
        if (!recorder().is_hostile()) return;
        flight_ = std::make_shared<Flight>();
        recorder().pause(std::chrono::microseconds(50));
    }

    void note(at::ScalarType type, int64_t in_elements, int64_t out_elements) {
        Record record;
        record.group = group_;
        record.number = numbers_++;
        record.op = op_;
        record.reduction = reduction_;
        record.type = name_of(type);
        record.in_elements = in_elements;
        record.out_elements = out_elements;
        record.peer = peer_;
        records_.push_back(recorder().start(std::move(record)));
    }

    at::Tensor read(const at::Tensor& input) const {
        return flight_ ? flight_->read(dense(input), records_.back()) : dense(input);
    }
    at::Tensor write(const at::Tensor& output) const {
        return flight_ ? flight_->write(dense(output), records_.back()) : dense(output);
    }
    at::Tensor update(const at::Tensor& both) const {
        return flight_ ? flight_->update(dense(both), records_.back()) : dense(both);
    }

    Tensors read(const Tensors& inputs) const {
        Tensors all;
        for (const at::Tensor& input : inputs) all.push_back(read(input));
        return all;
    }
    Tensors write(const Tensors& outputs) const {
        Tensors all;
        for (const at::Tensor& output : outputs) all.push_back(write(output));
        return all;
    }

    // `learns_peer`: the one who sent is known only at the wait.
    Started fly(Started inner, bool learns_peer = false) {
        // Not before the operation was accepted: a refused one leaves its tensors as they were.
        if (flight_) flight_->take_off();
        return c10::make_intrusive<ObservedWork>(std::move(inner), std::move(records_),
                                                 std::move(flight_),
                                                 learns_peer ? group_ : std::vector<int64_t>());
    }

  private:
    static const at::Tensor& dense(const at::Tensor& tensor) {
        TORCH_CHECK(tensor.layout() == at::kStrided,
                    "the observing backend does not support sparse tensors");
        return tensor;
    }

    const std::vector<int64_t>& group_;
    std::atomic<uint64_t>& numbers_;
    std::string op_;
    std::string reduction_;
    int64_t peer_;
    std::vector<Recorder::Handle> records_;
    std::shared_ptr<Flight> flight_;
};

class ObservingBackend : public c10d::Backend {
  public:
    ObservingBackend(c10::intrusive_ptr<c10d::Backend> inner, std::vector<int64_t> world_ranks)
        : Backend(inner->getRank(), inner->getSize()),
          inner_(std::move(inner)),
          world_ranks_(std::move(world_ranks)) {
        TORCH_CHECK(world_ranks_.size() == static_cast<std::size_t>(getSize()), "a group of ",
                    getSize(), " has ", world_ranks_.size(), " world ranks");
    }

    const std::string getBackendName() const override { return "zeroproof"; }
    void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
    uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }
    void abort() override { inner_->abort(); }
    void shutdown() override { inner_->shutdown(); }

    // Moves no data that anybody could use, and is not written down.
    Started barrier(const c10d::BarrierOptions& options) override {
        return inner_->barrier(options);
    }
    void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
        inner_->monitoredBarrier(options, wait_all_ranks);
    }

    Started allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
        Call call = begin("all_reduce", options.reduceOp);
        Tensors own = update_each(call, tensors);
        return call.fly(inner_->allreduce(own, options));
    }

    Started allreduce_coalesced(Tensors& tensors,
                                const c10d::AllreduceCoalescedOptions& options) override {
        Call call = begin("all_reduce", options.reduceOp);
        Tensors own = update_each(call, tensors);
        return call.fly(inner_->allreduce_coalesced(own, options));
    }

    Started broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
        Call call = begin("broadcast", "none", options.rootRank);
        Tensors own;
        for (const at::Tensor& tensor : tensors) {
            call.note(tensor.scalar_type(), tensor.numel(), tensor.numel());
            own.push_back(options.rootRank == getRank() ? call.read(tensor) : call.write(tensor));
        }
        return call.fly(inner_->broadcast(own, options));
    }

    // What another rank than the root finds in its tensor afterwards is undefined. In hostile
    // surroundings it keeps its input.
    Started reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
        const bool is_root = options.rootRank == getRank();
        Call call = begin("reduce", options.reduceOp, options.rootRank);
        Tensors own;
        for (const at::Tensor& tensor : tensors) {
            call.note(tensor.scalar_type(), tensor.numel(), is_root ? tensor.numel() : 0);
            own.push_back(is_root ? call.update(tensor) : call.read(tensor));
        }
        return call.fly(inner_->reduce(own, options));
    }

    Started allgather(TensorLists& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override {
        Call call = begin("all_gather");
        auto [own_outputs, own_inputs] = scatter_each(call, outputs, inputs);
        return call.fly(inner_->allgather(own_outputs, own_inputs, options));
    }

    Started _allgather_base(at::Tensor& output, at::Tensor& input,
                            const c10d::AllgatherOptions& options) override {
        Call call = begin("all_gather");
        call.note(input.scalar_type(), input.numel(), output.numel());
        at::Tensor own_input = call.read(input);
        at::Tensor own_output = call.write(output);
        return call.fly(inner_->_allgather_base(own_output, own_input, options));
    }

    // gloo wants a list of all inputs from each rank, and not one list for each input.
    Started allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override {
        Call call = begin("all_gather");
        Tensors own_inputs;
        TensorLists own_outputs(outputs.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            int64_t out_elements = 0;
            for (const Tensors& of_rank : outputs) out_elements += of_rank.at(i).numel();
            call.note(inputs[i].scalar_type(), inputs[i].numel(), out_elements);
            own_inputs.push_back(call.read(inputs[i]));
            for (std::size_t rank = 0; rank < outputs.size(); ++rank)
                own_outputs[rank].push_back(call.write(outputs[rank][i]));
        }
        return call.fly(inner_->allgather_coalesced(own_outputs, own_inputs, options));
    }

    Started allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override {
        Call call = begin("all_gather");
        auto [own_outputs, own_inputs] = pass_each(call, outputs, inputs);
        return call.fly(inner_->allgather_into_tensor_coalesced(own_outputs, own_inputs, options));
    }

    Started reduce_scatter(Tensors& outputs, TensorLists& inputs,
                           const c10d::ReduceScatterOptions& options) override {
        Call call = begin("reduce_scatter", options.reduceOp);
        auto [own_outputs, own_inputs] = gather_each(call, outputs, inputs);
        return call.fly(inner_->reduce_scatter(own_outputs, own_inputs, options));
    }

    Started _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override {
        Call call = begin("reduce_scatter", options.reduceOp);
        call.note(input.scalar_type(), input.numel(), output.numel());
        at::Tensor own_input = call.read(input);
        at::Tensor own_output = call.write(output);
        return call.fly(inner_->_reduce_scatter_base(own_output, own_input, options));
    }

    Started reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override {
        Call call = begin("reduce_scatter", options.reduceOp);
        auto [own_outputs, own_inputs] = pass_each(call, outputs, inputs);
        return call.fly(inner_->reduce_scatter_tensor_coalesced(own_outputs, own_inputs, options));
    }

    Started alltoall(Tensors& outputs, Tensors& inputs,
                     const c10d::AllToAllOptions& options) override {
        Call call = begin("all_to_all");
        TORCH_CHECK(!inputs.empty(), "an all-to-all of nothing");
        call.note(inputs[0].scalar_type(), elements_of(inputs), elements_of(outputs));
        Tensors own_inputs = call.read(inputs);
        Tensors own_outputs = call.write(outputs);
        return call.fly(inner_->alltoall(own_outputs, own_inputs, options));
    }

    Started alltoall_base(at::Tensor& output, at::Tensor& input,
                          std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
                          const c10d::AllToAllOptions& options) override {
        Call call = begin("all_to_all");
        call.note(input.scalar_type(), input.numel(), output.numel());
        at::Tensor own_input = call.read(input);
        at::Tensor own_output = call.write(output);
        return call.fly(
            inner_->alltoall_base(own_output, own_input, output_splits, input_splits, options));
    }

    // Gather and scatter are not in the protocol. They keep their names.
    Started gather(TensorLists& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override {
        Call call = begin("gather", "none", options.rootRank);
        auto [own_outputs, own_inputs] = scatter_each(call, outputs, inputs);
        return call.fly(inner_->gather(own_outputs, own_inputs, options));
    }

    Started scatter(Tensors& outputs, TensorLists& inputs,
                    const c10d::ScatterOptions& options) override {
        Call call = begin("scatter", "none", options.rootRank);
        auto [own_outputs, own_inputs] = gather_each(call, outputs, inputs);
        return call.fly(inner_->scatter(own_outputs, own_inputs, options));
    }

    Started send(Tensors& tensors, int destination, int tag) override {
        Call call = begin("send", "none", destination);
        Tensors own;
        for (const at::Tensor& tensor : tensors) {
            call.note(tensor.scalar_type(), tensor.numel(), 0);
            own.push_back(call.read(tensor));
        }
        return call.fly(inner_->send(own, destination, tag));
    }

    Started recv(Tensors& tensors, int source, int tag) override {
        Call call = begin("receive", "none", source);
        Tensors own = receive_each(call, tensors);
        return call.fly(inner_->recv(own, source, tag));
    }

    Started recvAnysource(Tensors& tensors, int tag) override {
        Call call = begin("receive");
        Tensors own = receive_each(call, tensors);
        return call.fly(inner_->recvAnysource(own, tag), /*learns_peer=*/true);
    }

  private:
    // `peer` is a rank of the group, and one that does not exist is the inner backend's to refuse.
    Call begin(const char* op, std::string reduction = "none", int64_t peer = -1) {
        const bool exists = peer >= 0 && peer < getSize();
        return Call(world_ranks_, numbers_, op, std::move(reduction),
                    exists ? world_ranks_[static_cast<std::size_t>(peer)] : -1);
    }
    Call begin(const char* op, const c10d::ReduceOp& reduction, int64_t peer = -1) {
        return begin(op, name_of(reduction), peer);
    }

    static Tensors update_each(Call& call, const Tensors& tensors) {
        Tensors own;
        for (const at::Tensor& tensor : tensors) {
            call.note(tensor.scalar_type(), tensor.numel(), tensor.numel());
            own.push_back(call.update(tensor));
        }
        return own;
    }

    static Tensors receive_each(Call& call, const Tensors& tensors) {
        Tensors own;
        for (const at::Tensor& tensor : tensors) {
            call.note(tensor.scalar_type(), 0, tensor.numel());
            own.push_back(call.write(tensor));
        }
        return own;
    }

    // Input i is for output i.
    static std::pair<Tensors, Tensors> pass_each(Call& call, const Tensors& outputs,
                                                 const Tensors& inputs) {
        std::pair<Tensors, Tensors> own;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            call.note(inputs[i].scalar_type(), inputs[i].numel(), outputs.at(i).numel());
            own.second.push_back(call.read(inputs[i]));
            own.first.push_back(call.write(outputs[i]));
        }
        return own;
    }

    // Input i is for the tensors of list i, of which a rank that gets nothing has none.
    static std::pair<TensorLists, Tensors> scatter_each(Call& call, const TensorLists& outputs,
                                                        const Tensors& inputs) {
        std::pair<TensorLists, Tensors> own;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Tensors& list = i < outputs.size() ? outputs[i] : Tensors();
            call.note(inputs[i].scalar_type(), inputs[i].numel(), elements_of(list));
            own.second.push_back(call.read(inputs[i]));
            if (i < outputs.size()) own.first.push_back(call.write(list));
        }
        return own;
    }

    // The tensors of list i are for output i; a rank that gives nothing has no lists.
    static std::pair<Tensors, TensorLists> gather_each(Call& call, const Tensors& outputs,
                                                       const TensorLists& inputs) {
        std::pair<Tensors, TensorLists> own;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const Tensors& list = i < inputs.size() ? inputs[i] : Tensors();
            call.note(outputs[i].scalar_type(), elements_of(list), outputs[i].numel());
            if (i < inputs.size()) own.second.push_back(call.read(list));
            own.first.push_back(call.write(outputs[i]));
        }
        return own;
    }

    c10::intrusive_ptr<c10d::Backend> inner_;
    std::vector<int64_t> world_ranks_;
    std::atomic<uint64_t> numbers_{0};
};

py::list take_records() {
    py::list list;
    for (const Record& record : recorder().take_records()) {
        py::dict row;
        row["action"] = record.action;
        row["phase"] = record.phase;
        row["op"] = record.op;
        row["reduction"] = record.reduction;
        row["type"] = record.type;
        row["in_elements"] = record.in_elements;
        row["out_elements"] = record.out_elements;
        row["peer"] = record.peer;
        row["group"] = record.group;
        row["number"] = record.number;
        row["awaited"] = record.awaited;
        list.append(std::move(row));
    }
    return list;
}

py::list take_races() {
    py::list list;
    for (const Race& race : recorder().take_races()) {
        py::dict row;
        row["kind"] = race.kind;
        row["operation"] = race.operation;
        row["number"] = race.number;
        row["element"] = race.element;
        list.append(std::move(row));
    }
    return list;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    // The base class is torch's, and known once torch is imported.
    py::module_::import("torch.distributed");
    py::class_<ObservingBackend, c10d::Backend, c10::intrusive_ptr<ObservingBackend>>(
        module, "ObservingBackend")
        .def(py::init<c10::intrusive_ptr<c10d::Backend>, std::vector<int64_t>>(), py::arg("inner"),
             py::arg("world_ranks"));
    module.def("enter", [](int64_t action, std::string phase) {
        recorder().enter(action, std::move(phase));
    });
    module.def("set_hostile", [](std::optional<uint64_t> seed, int64_t rank) {
        recorder().set_hostile(seed, rank);
    });
    module.def("take_records", &take_records);
    module.def("take_races", &take_races);
    module.def("in_flight", [] { return recorder().in_flight(); });
    module.def(
        "drain", [] { deliverer().drain(); }, py::call_guard<py::gil_scoped_release>());
}

}  // namespace zeroproof::observer
