// Bytes that a rank would take: a ledger without any memory behind it.
#pragma once

#include <cstddef>
#include <utility>

#include "memory/ledger.h"

namespace zeroproof::scenarios {

// Bytes of one category, taken when it is made and returned when it ends.
class PlannedBytes {
  public:
    PlannedBytes() = default;
    PlannedBytes(memory::Ledger& ledger, memory::Category category, std::size_t bytes)
        : ledger_(&ledger), category_(category), bytes_(bytes) {
        ledger.add(category, bytes);
    }
    PlannedBytes(PlannedBytes&& other) noexcept { swap(other); }
    PlannedBytes& operator=(PlannedBytes&& other) noexcept {
        PlannedBytes(std::move(other)).swap(*this);
        return *this;
    }
    ~PlannedBytes() {
        if (ledger_ != nullptr) ledger_->remove(category_, bytes_);
    }
    std::size_t bytes() const { return bytes_; }

  private:
    void swap(PlannedBytes& other) noexcept {
        std::swap(ledger_, other.ledger_);
        std::swap(category_, other.category_);
        std::swap(bytes_, other.bytes_);
    }
    memory::Ledger* ledger_ = nullptr;
    memory::Category category_ = memory::Category::buffer;
    std::size_t bytes_ = 0;
};

}  // namespace zeroproof::scenarios
