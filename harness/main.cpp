#include <fmt/format.h>
#include "harness/run.h"
#include "harness/subjects/reference_subject.h"
#include "suites/conformance/family.h"
using namespace zeroproof;
int main(int argc, char** argv) {
    auto cases = suites::all_cases();
    std::vector<const suites::Case*> chosen;
    for (auto& c : cases) if (argc < 2 || c.id.find(argv[1]) != std::string::npos) chosen.push_back(&c);
    auto subject = harness::make_reference_subject();
    harness::Record record; harness::RunOptions o; o.jobs = 2; o.timeout = std::chrono::seconds(20);
    o.stuck = [](const std::string& m) { fmt::print("{}\n", m); std::_Exit(4); };
    harness::run(*subject, chosen, o, record);
    std::map<std::string, int> fails;
    for (auto& r : record.cases) for (auto& cl : r.clauses) {
        if (cl.judgement.verdict == suites::Verdict::fail || cl.judgement.verdict == suites::Verdict::harness_error) {
            if (fails[std::string(cl.clause->name)]++ == 0) {
                auto& d = cl.judgement.first;
                fmt::print("{} {} {}\n  {}: expected {} seen {} rank {} action {} step {} param {} el {} : {} (+{})\n", suites::name_of(cl.judgement.verdict), cl.clause->name, r.c->id, d.quantity, d.expected, d.seen, d.rank, d.action, d.step, d.parameter, d.element, d.diagnosis, cl.judgement.more_like_it);
                fmt::print("{} {}\n", cl.judgement.note, r.message);
            }
        }
    }
    for (auto& [n, k] : fails) fmt::print("{} {}\n", n, k);
    fmt::print("cases {} seconds {:.2f} pass {} fail {} exit {}\n", record.cases.size(), record.seconds, record.count(suites::Verdict::pass), record.count(suites::Verdict::fail), harness::exit_code(record));
}
