#include "memory/space.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <utility>

namespace zeroproof::memory {

namespace {

constexpr std::align_val_t kAlignment{64};

void free_aligned(std::byte* storage) {
    ::operator delete(storage, kAlignment);
}

void poison(std::byte* storage, std::size_t bytes) {
    if (bytes > 0) std::memset(storage, std::to_integer<int>(kPoison), bytes);
}

}  // namespace

Space::Space(std::string name, std::size_t capacity_bytes, Returned returned)
    : name_(std::move(name)), capacity_bytes_(capacity_bytes), returned_(returned) {}

Space::~Space() = default;

Space::Storage Space::take(Category category, std::size_t bytes) {
    const std::size_t live = ledger_.live_bytes();
    if (bytes > capacity_bytes_ - live)
        throw OutOfMemory(fmt::format(
            "out of memory in {}: {} bytes asked for as {} in phase {}, {} of {} bytes are live",
            name_, bytes, name_of(category), name_of(ledger_.phase()), live, capacity_bytes_));
    Storage storage(static_cast<std::byte*>(::operator new(bytes, kAlignment)), free_aligned);
    if (returned_ != Returned::unpoisoned) poison(storage.get(), bytes);
    // Room for every buffer out there, so that giving back cannot throw.
    if (returned_ == Returned::quarantined &&
        quarantine_.capacity() < quarantine_.size() + taken_ + 1)
        quarantine_.reserve(2 * (quarantine_.size() + taken_ + 1));
    ledger_.add(category, bytes);
    if (observer_ != nullptr) observer_->taken(storage.get(), category, bytes);
    ++taken_;
    return storage;
}

void Space::give_back(Category category, std::size_t bytes, Storage storage) noexcept {
    if (returned_ != Returned::unpoisoned) poison(storage.get(), bytes);
    ledger_.remove(category, bytes);
    if (observer_ != nullptr) observer_->returned(storage.get());
    --taken_;
    if (returned_ == Returned::quarantined) quarantine_.push_back(std::move(storage));
}

Buffer::Buffer(Space& space, Category category, DType type, std::size_t elements)
    : category_(category), type_(type) {
    if (elements == 0) return;
    if (elements > Space::kUnlimited / size_of(type))
        throw OutOfMemory(fmt::format("out of memory in {}: {} elements of {} exceed any address",
                                      space.name(), elements, name_of(type)));
    storage_ = space.take(category, elements * size_of(type));
    space_ = &space;
    elements_ = elements;
}

Buffer::~Buffer() {
    if (space_ != nullptr) space_->give_back(category_, size_bytes(), std::move(storage_));
}

std::span<float> Buffer::floats() {
    const auto view = std::as_const(*this).floats();
    return {const_cast<float*>(view.data()), view.size()};
}

std::span<const float> Buffer::floats() const {
    if (type_ != DType::fp32)
        throw std::logic_error(fmt::format("a buffer of {} read as fp32", name_of(type_)));
    return {reinterpret_cast<const float*>(data()), elements_};
}

void Buffer::fill_zero() {
    if (!empty()) std::memset(data(), 0, size_bytes());
}

void Buffer::swap(Buffer& other) noexcept {
    std::swap(space_, other.space_);
    std::swap(category_, other.category_);
    std::swap(type_, other.type_);
    std::swap(elements_, other.elements_);
    std::swap(storage_, other.storage_);
}

}  // namespace zeroproof::memory
