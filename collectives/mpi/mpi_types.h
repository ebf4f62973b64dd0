// Element types, counts and reductions as MPI takes them.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string>

#include "collectives/communicator.h"
#include "collectives/mpi/mpi_header.h"

namespace zeroproof::collectives {

// "MPI_ERR_TRUNCATE: message truncated", as MPI words it.
std::string mpi_error_text(int code);

// What holds an element. 16-bit floats are two opaque bytes to MPI.
MPI_Datatype mpi_type_of(DType type);

// A number of elements in one call: as they are, or as a single element of a derived type where
// they are more than `largest`. Throws MpiFailure.
class MpiCount {
  public:
    MpiCount(DType type, std::size_t elements, int largest);
    MpiCount(const MpiCount&) = delete;
    MpiCount& operator=(const MpiCount&) = delete;
    ~MpiCount();

    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }
    bool is_derived() const { return is_derived_; }

  private:
    int count_;
    MPI_Datatype type_;
    bool is_derived_ = false;
};

// The operations of MPI for reductions. Its own ones add what has 32 bits or more, and find the
// largest and smallest of integers; the others are ours, made when first asked for. Lives from
// after MPI_Init to before MPI_Finalize, and longer than what is in flight.
class MpiReductions {
  public:
    MpiReductions() { own_.fill(MPI_OP_NULL); }
    MpiReductions(const MpiReductions&) = delete;
    MpiReductions& operator=(const MpiReductions&) = delete;

    // sum, max or min.
    MPI_Op of(DType type, Reduction reduction, bool is_derived);
    void free();

  private:
    static constexpr std::size_t kReductions = 3;
    std::array<MPI_Op, std::size(memory::kAllDTypes) * kReductions> own_{};
};

}  // namespace zeroproof::collectives
