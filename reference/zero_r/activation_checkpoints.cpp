#include "reference/zero_r/activation_checkpoints.h"

#include <algorithm>
#include <cstring>

namespace zeroproof::reference {

using memory::Category;

ActivationCheckpoints::ActivationCheckpoints(std::size_t count, std::size_t elements, DType type,
                                             memory::Space& device,
                                             const CheckpointPlacement& placement)
    : elements_(elements), type_(type), device_(device), placement_(placement), kept_(count) {
    part_elements_ = (elements + parts() - 1) / parts();
    if (placement.contiguous) arena_ = {home(), Category::checkpoint, type, count * part_elements_};
    if (placement.host != nullptr) stream_ = std::make_unique<CopyStream>();
}

void ActivationCheckpoints::put(std::size_t index, ConstTensor activation) {
    const std::size_t rank = placement_.partition_over == nullptr
                                 ? 0
                                 : static_cast<std::size_t>(placement_.partition_over->rank());
    const std::size_t begin = std::min(rank * part_elements_, elements_);
    const std::size_t held = std::min(part_elements_, elements_ - begin);
    const std::size_t width = memory::size_of(type_);
    const auto copy_part = [&](std::byte* to) {
        if (held > 0) std::memcpy(to, activation.data + begin * width, held * width);
        std::memset(to + held * width, 0, (part_elements_ - held) * width);
    };
    if (!placement_.contiguous) kept_[index] = new_part(home(), Category::checkpoint);
    if (placement_.host == nullptr) return copy_part(room(index));

    settle();  // one at a time bounds what the device holds of what leaves it
    leaving_ = {index, new_part(device_, Category::buffer), 0};
    copy_part(leaving_->on_device.data());
    leaving_->copy =
        stream_->start(room(index), leaving_->on_device.data(), part_elements_ * width);
}

void ActivationCheckpoints::settle() {
    if (!leaving_) return;
    stream_->wait(leaving_->copy);
    leaving_.reset();
}

void ActivationCheckpoints::prefetch(std::size_t index) {
    if (placement_.host == nullptr || (returning_ && returning_->index == index)) return;
    settle();
    returning_ = {index, new_part(device_, Category::buffer), 0};
    returning_->copy = stream_->start(returning_->on_device.data(), room(index),
                                      returning_->on_device.size_bytes());
}

memory::Buffer ActivationCheckpoints::take(std::size_t index) {
    memory::Buffer part;
    const std::byte* from = nullptr;
    if (placement_.host != nullptr) {
        prefetch(index);
        stream_->wait(returning_->copy);
        part = std::move(returning_->on_device);
        returning_.reset();
        from = part.data();
    } else {
        from = room(index);
    }
    memory::Buffer whole(device_, Category::activation, type_, part_elements_ * parts());
    if (placement_.partition_over != nullptr)
        placement_.partition_over->all_gather(from, whole.data(), part_elements_, type_).wait();
    else if (!whole.empty())
        std::memcpy(whole.data(), from, whole.size_bytes());
    forget(index);
    return whole;
}

ConstTensor ActivationCheckpoints::part(std::size_t index) {
    settle();
    return {type_, room(index), part_elements_};
}

std::size_t ActivationCheckpoints::parts() const {
    return placement_.partition_over == nullptr
               ? 1
               : static_cast<std::size_t>(placement_.partition_over->size());
}

memory::Buffer ActivationCheckpoints::new_part(memory::Space& space, Category category) const {
    return {space, category, type_, part_elements_};
}

std::byte* ActivationCheckpoints::room(std::size_t index) {
    return placement_.contiguous ? arena_.at(index * part_elements_) : kept_[index].data();
}

void ActivationCheckpoints::forget(std::size_t index) {
    if (!placement_.contiguous) kept_[index] = {};
}

}  // namespace zeroproof::reference
