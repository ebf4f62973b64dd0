// Memory spaces with a capacity, and the buffers that live in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/dtype.h"
#include "memory/ledger.h"

namespace zeroproof::memory {

class OutOfMemory : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Every byte of memory that a rank does not own, or has not written yet. All ones is NaN in each
// floating type and -1 in each integer type.
inline constexpr std::byte kPoison{0xFF};

// What happens to the storage of a buffer that is returned.
enum class Returned {
    reused,       // to the system at once
    quarantined,  // kept, full of poison, until the space ends: a late reader finds NaN
    unpoisoned    // to the system at once, and nothing is poisoned: where time is measured
};

// Told of each buffer of a space, as it is taken and returned; outlives the space.
class SpaceObserver {
  public:
    virtual ~SpaceObserver() = default;
    // `storage` names the buffer until it is returned.
    virtual void taken(const std::byte* storage, Category category, std::size_t bytes) = 0;
    virtual void returned(const std::byte* storage) = 0;
};

// One memory of one rank: a device or a host. Used by the thread of that rank alone.
class Space {
  public:
    static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

    explicit Space(std::string name, std::size_t capacity_bytes = kUnlimited,
                   Returned returned = Returned::reused);
    Space(const Space&) = delete;
    Space& operator=(const Space&) = delete;
    ~Space();

    const std::string& name() const { return name_; }
    std::size_t capacity_bytes() const { return capacity_bytes_; }
    Ledger& ledger() { return ledger_; }
    const Ledger& ledger() const { return ledger_; }
    void observe(SpaceObserver* observer) { observer_ = observer; }

  private:
    friend class Buffer;
    using Storage = std::unique_ptr<std::byte, void (*)(std::byte*)>;
    // Throws OutOfMemory, naming the space, what was asked for, what is live and the capacity.
    Storage take(Category category, std::size_t bytes);
    void give_back(Category category, std::size_t bytes, Storage storage) noexcept;

    std::string name_;
    std::size_t capacity_bytes_;
    Returned returned_;
    Ledger ledger_;
    std::size_t taken_ = 0;  // buffers that are live
    std::vector<Storage> quarantine_;
    SpaceObserver* observer_ = nullptr;
};

// Elements of one type in a space: owned, 64-byte aligned, full of poison when taken and when
// returned, unless the space says otherwise. An empty buffer holds nothing and belongs to no space.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Space& space, Category category, DType type, std::size_t elements);
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~Buffer();

    DType type() const { return type_; }
    std::size_t elements() const { return elements_; }
    std::size_t size_bytes() const { return elements_ * size_of(type_); }
    bool empty() const { return elements_ == 0; }
    std::byte* data() { return storage_.get(); }
    const std::byte* data() const { return storage_.get(); }
    // Address of the element at `index`, which may be one past the last.
    std::byte* at(std::size_t index) { return data() + index * size_of(type_); }
    const std::byte* at(std::size_t index) const { return data() + index * size_of(type_); }
    // The elements as floats. Throws std::logic_error when the type is another.
    std::span<float> floats();
    std::span<const float> floats() const;
    void fill_zero();

  private:
    void swap(Buffer& other) noexcept;

    Space* space_ = nullptr;
    Category category_ = Category::buffer;
    DType type_ = DType::fp32;
    std::size_t elements_ = 0;
    Space::Storage storage_{nullptr, nullptr};
};

}  // namespace zeroproof::memory
