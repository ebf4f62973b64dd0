// The tensors of one call in hostile surroundings, from its start to its landing.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "recorder.h"

namespace zeroproof::observer {

// Copies of tensors are no operations of the program: neither autograd nor the version counters nor
// a dispatch mode of Python is to notice them.
struct Unnoticed {
    at::AutoDispatchBelowADInplaceOrView no_autograd;
    c10::impl::ExcludeDispatchKeyGuard no_python{c10::python_ks};
};

// The operation works on private copies. Until it lands the real outputs are full of poison, and
// nobody may touch the real inputs either.
class Flight {
  public:
    // Each returns the private copy, which is what the operation is to be started with.
    at::Tensor read(const at::Tensor& input, Recorder::Handle record) {
        return hold(input, true, false, std::move(record));
    }
    at::Tensor write(const at::Tensor& output, Recorder::Handle record) {
        return hold(output, false, true, std::move(record));
    }
    at::Tensor update(const at::Tensor& both, Recorder::Handle record) {
        return hold(both, true, true, std::move(record));
    }

    // To be called once the operation was started.
    void take_off() {
        const Unnoticed guard;
        for (const Held& held : held_)
            if (held.writes) held.real.copy_(poison_like(held.real));
        // After all poison: an input may lie within an output.
        for (Held& held : held_)
            if (held.reads) held.in_flight = contiguous_copy(held.real);
    }

    // To be called once the operation has ended; calls after the first do nothing.
    void land() {
        const std::lock_guard lock(mutex_);
        if (std::exchange(landed_, true)) return;
        const Unnoticed guard;
        for (const Held& held : held_) {
            if (held.reads) compare(kInputTouched, held, held.in_flight);
            if (held.writes) compare(kOutputTouched, held, poison_like(held.real));
        }
        for (Held& held : held_) {
            if (held.writes && is_allocated(held.real)) held.real.copy_(held.private_copy);
            // The real tensor stays: to drop it may take Python's lock, which whoever waits for
            // ours may hold.
            held.private_copy.reset();
            held.in_flight.reset();
        }
    }

    bool has_landed() {
        const std::lock_guard lock(mutex_);
        return landed_;
    }

    std::vector<at::Tensor> outputs() const {
        std::vector<at::Tensor> tensors;
        for (const Held& held : held_)
            if (held.writes) tensors.push_back(held.real);
        return tensors;
    }

  private:
    struct Held {
        at::Tensor real;
        at::Tensor private_copy;
        at::Tensor in_flight;  // what is in the real input meanwhile
        bool reads;
        bool writes;
        Recorder::Handle record;
    };

    at::Tensor hold(const at::Tensor& real, bool reads, bool writes, Recorder::Handle record) {
        const Unnoticed guard;
        // Outputs too, for an operation that leaves part of them as they are.
        at::Tensor copy = real.clone(at::MemoryFormat::Preserve);
        held_.push_back({real, copy, {}, reads, writes, std::move(record)});
        return copy;
    }

    // A floating-point number whose bits are all set is NaN, in every format.
    static at::Tensor poison_like(const at::Tensor& tensor) {
        at::Tensor poison = at::empty(tensor.sizes(), tensor.options());
        if (poison.nbytes() > 0) std::memset(poison.data_ptr(), 0xff, poison.nbytes());
        return poison;
    }

    static at::Tensor contiguous_copy(const at::Tensor& tensor) {
        return tensor.clone(at::MemoryFormat::Contiguous);
    }

    // Some free a tensor by shrinking its storage to nothing.
    static bool is_allocated(const at::Tensor& tensor) {
        return tensor.numel() == 0 || tensor.storage().nbytes() > 0;
    }

    static void compare(const char* kind, const Held& held, const at::Tensor& expected) {
        if (!is_allocated(held.real)) {
            recorder().note(kind, *held.record, 0);
            return;
        }
        const at::Tensor seen = held.real.contiguous();
        if (seen.nbytes() == 0) return;
        // Bytes, as no NaN equals itself.
        const auto* bytes = static_cast<const char*>(seen.data_ptr());
        const auto* wanted = static_cast<const char*>(expected.data_ptr());
        const auto* at = std::mismatch(bytes, bytes + seen.nbytes(), wanted).first;
        if (at != bytes + seen.nbytes())
            recorder().note(kind, *held.record,
                            (at - bytes) / static_cast<int64_t>(seen.element_size()));
    }

    std::vector<Held> held_;
    std::mutex mutex_;
    bool landed_ = false;
};

}  // namespace zeroproof::observer
