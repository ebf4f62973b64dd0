#include "harness/cli/lab.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>

#include "harness/lab/node_shell.h"
#include "harness/lab/requirements.h"
#include "harness/lab/run.h"
#include "harness/lab/state.h"
#include "harness/lab/take_down.h"

namespace zeroproof::harness {

namespace {

std::string speed_of(const Cluster& cluster, collectives::LinkClass link_class) {
    const collectives::Link& link = cluster.topology.link(link_class);
    if (!link.bandwidth_bytes_per_s) return "-";
    return fmt::format("{:g} a {}", *link.bandwidth_bytes_per_s * 8 / 1e9, name_of(link.sharing));
}

// As a shell reads it.
std::string quoted(const std::string& word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

void print_command(const std::vector<std::string>& command) {
    std::vector<std::string> words;
    for (const std::string& word : command) words.push_back(quoted(word));
    fmt::print("{}\n", fmt::join(words, " "));
}

}  // namespace

int lab_run(const LabCommand& options) {
    const Cluster cluster = lab_cluster(load_cluster(options.cluster), options.overrides);
    const std::string name = options.name.empty() ? fmt::format("zp-{}", getpid()) : options.name;
    const LabPlan plan = plan_lab(name, cluster, choose_subnet(networks_of_this_machine()));
    if (!options.dry_run) return run_lab(plan, options.command);
    for (const LabStep& step : plan.steps) print_command(step.command);
    print_command(launch_command(plan, std::filesystem::path(kLabsFolder) / name, options.command));
    return 0;
}

int lab_list() {
    const std::vector<LabState> labs = LabState::load_all(kLabsFolder);
    if (labs.empty()) fmt::print("no labs\n");
    for (const LabState& lab : labs) {
        fmt::print("{:<24} {:<9} owner {:<8} {} namespaces\n", lab.name(),
                   lab.is_owner_alive() ? "alive" : "left over", lab.owner() ? lab.owner()->pid : 0,
                   lab.namespaces().size());
    }
    return 0;
}

int lab_clean(const std::string& name, bool dry_run) {
    require_permission();
    std::vector<LabState> labs = LabState::load_all(kLabsFolder);
    if (!name.empty()) {
        std::erase_if(labs, [&](const LabState& lab) { return lab.name() != name; });
        if (labs.empty()) throw LabRefused(fmt::format("there is no lab '{}'", name));
        if (labs.front().is_owner_alive())
            throw LabRefused(fmt::format("the lab '{}' is in use by process {}: end that", name,
                                         labs.front().owner()->pid));
    }
    int code = 0;
    for (LabState& lab : labs) {
        if (lab.is_owner_alive()) continue;
        for (const std::string& remains : remains_of(lab))
            fmt::print("{} {}\n", dry_run ? "would remove" : "removing", remains);
        if (dry_run) continue;
        for (const std::string& left : take_down(lab)) {
            fmt::print(stderr, "zeroproof: still there: {}\n", left);
            code = kLabFault;
        }
    }
    return code;
}

int lab_shell(const std::vector<std::string>& words) {
    if (words.size() < 3) {
        fmt::print(stderr, "zeroproof: lab-shell takes a folder, an address and a command\n");
        return 2;
    }
    run_node_shell(words[0], words[1], {words.begin() + 2, words.end()});
}

int list_clusters() {
    fmt::print("{:<22} {:>6}  {:>14} {:>14}  {}\n", "name", "shape", "in a node", "between nodes",
               "Gbit/s one way, each rank's or each node's");
    for (const std::string& name : cluster_names()) {
        const Cluster cluster = load_cluster(name);
        fmt::print("{:<22} {:>6}  {:>14} {:>14}  {}\n", name, shape_of(cluster.topology),
                   speed_of(cluster, collectives::LinkClass::intra_node),
                   speed_of(cluster, collectives::LinkClass::inter_node), cluster.description);
    }
    return 0;
}

}  // namespace zeroproof::harness
