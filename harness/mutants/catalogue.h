// Mutants: small faults of the reference's source, each as a piece of text and what replaces it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::harness {

struct Mutant {
    std::string name;         // for ever, and once in all catalogues of a run
    std::string fault_class;  // of the fault as seen in the field, such as FC01
    std::string file;         // relative to the source tree
    std::string find;         // stands in the file exactly once; may be several lines
    std::string replace;
    std::string killed_by;  // the clause that names the fault
    std::string why;        // one sentence: the fault as seen in the field
    std::string catalogue;  // the file it was read from
};

// An object with the key "mutants", an array of objects that have each of the keys name, class,
// file, find, replace, killed_by and why, and no other. Throws scenarios::BadInput, naming the
// catalogue and the place in it, also for a clause that does not exist, for a file that is no
// source of memory/, collectives/ or reference/ (whoever judges is not changed), and for a `find`
// that does not stand in it exactly once.
std::vector<Mutant> read_catalogue(std::string_view text, const std::string& catalogue,
                                   const std::filesystem::path& source_tree);

// Of several files. Throws scenarios::BadInput, also if two mutants have the same name.
std::vector<Mutant> read_catalogues(const std::vector<std::filesystem::path>& files,
                                    const std::filesystem::path& source_tree);

// The catalogues of the source tree, suites/conformance/mutants/*.json, sorted.
std::vector<std::filesystem::path> committed_catalogues(const std::filesystem::path& source_tree);

// Of the mutants that the same clause is to kill only one, which the seed chooses; in their order.
std::vector<Mutant> one_a_clause(const std::vector<Mutant>& mutants, std::uint64_t seed);

// The file's text with the fault in it.
std::string mutated_source(const Mutant& mutant, const std::filesystem::path& source_tree);

}  // namespace zeroproof::harness
