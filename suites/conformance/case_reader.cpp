#include "suites/conformance/case_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "scenarios/planner/planned_transformer.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::suites {

namespace {

constexpr std::int64_t kMostElements = 1 << 24;
constexpr std::int64_t kMostRanks = 64;
constexpr std::int64_t kMostMicroSteps = 1024;
constexpr std::size_t kMostActions = 10'000;

// A number, or "N+1", "2N-1", "B", "3B", "B+1" with the ranks N and the bucket's elements B.
std::size_t read_size(const scenarios::JsonReader& size, const Case& c) {
    std::int64_t value = 0;
    if (size.json().is_string()) {
        const std::string text = size.text();
        const char* at = text.data();
        const char* const end = at + text.size();
        std::int64_t factor = 1;
        std::int64_t offset = 0;
        if (const auto parsed = std::from_chars(at, end, factor); parsed.ec == std::errc())
            at = parsed.ptr;
        const char unit = at < end ? *at++ : '\0';
        if (end - at >= 2 && (*at == '+' || *at == '-')) {
            const bool minus = *at++ == '-';
            std::uint32_t digits = 0;  // unsigned: no second sign
            if (const auto parsed = std::from_chars(at, end, digits); parsed.ec == std::errc())
                at = parsed.ptr;
            offset = minus ? -std::int64_t{digits} : std::int64_t{digits};
        }
        if ((unit != 'N' && unit != 'B') || at != end || factor > kMostElements || factor < 1)
            size.fail(
                fmt::format("\"{}\" is no size: expected a number, or such as \"2N+1\" "
                            "(ranks) or \"B-1\" (elements of a bucket)",
                            text));
        value = factor * (unit == 'N' ? c.ranks : static_cast<std::int64_t>(c.bucket_elements)) +
                offset;
        if (value < 0 || value > kMostElements)
            size.fail(fmt::format("{} is outside of 0 to {}", value, kMostElements));
    } else {
        value = size.integer(0, kMostElements);
    }
    return static_cast<std::size_t>(value);
}

ParameterCase read_parameter(const scenarios::JsonReader& object, const Case& c) {
    object.allow({"name", "shape", "group", "trainable", "usage", "gradient_exponent"});
    ParameterCase parameter;
    parameter.name = object.at("name").text();
    if (parameter.name.empty()) object.at("name").fail("a parameter needs a name");
    std::size_t elements = 1;
    for (const scenarios::JsonReader& size : object.at("shape").items()) {
        parameter.shape.push_back(read_size(size, c));
        elements *= std::max<std::size_t>(1, parameter.shape.back());
        if (elements > kMostElements)
            object.at("shape").fail(
                fmt::format("more than {} elements in one parameter", kMostElements));
    }
    if (object.has("group"))
        parameter.group = static_cast<int>(
            object.at("group").integer(0, static_cast<std::int64_t>(c.groups.size()) - 1));
    if (object.has("trainable")) parameter.trainable = object.at("trainable").boolean();
    if (object.has("gradient_exponent"))
        parameter.gradient_exponent =
            static_cast<int>(object.at("gradient_exponent").integer(-20, 20));
    if (object.has("usage"))
        parameter.usage = static_cast<Usage>(object.at("usage").choice(
            {"always", "even_ranks", "odd_micro_steps", "alternating", "never"}));
    return parameter;
}

GroupCase read_group(const scenarios::JsonReader& object) {
    object.allow({"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "decay"});
    GroupCase group;
    const auto read = [&](const char* key, double& value, double lowest, double below) {
        if (!object.has(key)) return;
        value = object.at(key).number();
        if (value < lowest || value >= below)
            object.at(key).fail(
                fmt::format("expected at least {} and less than {}", lowest, below));
        if (static_cast<double>(static_cast<float>(value)) != value)
            object.at(key).fail("not exact in fp32: the bounds assume that it is");
    };
    read("learning_rate", group.learning_rate, 0, 1e3);
    read("beta1", group.beta1, 0, 1);
    read("beta2", group.beta2, 0, 1);
    read("epsilon", group.epsilon, 0x1p-126, 1e3);
    read("weight_decay", group.weight_decay, 0, 1e3);
    if (object.has("decay")) group.l2 = object.at("decay").choice({"decoupled", "l2"}) == 1;
    return group;
}

LossScaleCase read_loss_scale(const scenarios::JsonReader& object) {
    object.allow({"initial", "factor", "growth_interval", "hysteresis", "minimum"});
    LossScaleCase scale;
    if (object.has("initial")) scale.initial = object.at("initial").number();
    if (object.has("factor")) scale.factor = object.at("factor").number();
    if (object.has("minimum")) scale.minimum = object.at("minimum").number();
    if (object.has("growth_interval"))
        scale.growth_interval =
            static_cast<int>(object.at("growth_interval").integer(1, 1'000'000));
    if (object.has("hysteresis"))
        scale.hysteresis = static_cast<int>(object.at("hysteresis").integer(1, 1000));
    if (!(scale.minimum > 0 && scale.initial >= scale.minimum && scale.factor > 1))
        object.fail("expected 0 < minimum <= initial, and a factor above 1");
    for (const double value : {scale.initial, scale.factor, scale.minimum}) {
        int exponent = 0;
        if (std::frexp(value, &exponent) != 0.5 || std::abs(exponent) > 25)
            object.fail(
                fmt::format("{} is no power of two from 2^-24 to 2^24: others would round "
                            "the gradients",
                            value));
    }
    return scale;
}

std::size_t parameter_named(const scenarios::JsonReader& name, const Case& c) {
    const std::string wanted = name.text();
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (c.parameters[p].name == wanted) return p;
    name.fail(fmt::format("no parameter is named \"{}\"", wanted));
}

void read_units(const scenarios::JsonReader& object, Case& c) {
    if (!object.has("units")) {
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            c.units.push_back({"unit " + c.parameters[p].name, {p}});
        return;
    }
    for (const scenarios::JsonReader& names : object.at("units").items()) {
        UnitCase unit{fmt::format("unit {}", c.units.size()), {}};
        for (const scenarios::JsonReader& name : names.items()) {
            const std::size_t parameter = parameter_named(name, c);
            if (std::ranges::count(unit.parameters, parameter))
                name.fail("stands twice in one unit");
            unit.parameters.push_back(parameter);
        }
        c.units.push_back(std::move(unit));
    }
}

int read_group_index(const scenarios::JsonReader& action, const Case& c) {
    return static_cast<int>(
        action.at("group").integer(0, static_cast<std::int64_t>(c.groups.size()) - 1));
}

// A power of two: other factors would round what is compared exactly.
double read_factor(const scenarios::JsonReader& factor) {
    int exponent = 0;
    const double value = factor.number();
    if (std::frexp(std::abs(value), &exponent) != 0.5 || std::abs(exponent) > 8)
        factor.fail("expected a power of two from 2^-8 to 2^7, or its negative");
    return value;
}

double read_rate(const scenarios::JsonReader& rate) {
    const double value = rate.number();
    if (!(value >= 0 && value < 1e3) || static_cast<double>(static_cast<float>(value)) != value)
        rate.fail("expected a number from 0 to 1000 that is exact in fp32");
    return value;
}

// An object such as {"action": "rate", "group": 1, "learning_rate": 0.5}, with the keys of its
// kind.
Action read_action(const scenarios::JsonReader& object, const Case& c) {
    Action action{scenarios::read_named<ActionKind>(object.at("action"), kActionKinds)};
    switch (action.kind) {
        case ActionKind::micro_step:
            object.allow({"action", "unused"});
            for (const scenarios::JsonReader& item : object.has("unused")
                                                         ? object.at("unused").items()
                                                         : std::vector<scenarios::JsonReader>()) {
                item.allow({"parameter", "rank"});
                action.unused.push_back(
                    {parameter_named(item.at("parameter"), c),
                     item.has("rank")
                         ? static_cast<int>(item.at("rank").integer(-1, kMostRanks - 1))
                         : -1});
            }
            break;
        case ActionKind::zero_grad:
            object.allow({"action", "by"});
            if (object.has("by")) action.by_model = object.at("by").choice({"optimizer", "model"});
            break;
        case ActionKind::rate:
            object.allow({"action", "group", "learning_rate"});
            action.group = read_group_index(object, c);
            action.value = read_rate(object.at("learning_rate"));
            break;
        case ActionKind::add_group:
            object.allow({"action", "group"});
            action.group = read_group_index(object, c);
            break;
        case ActionKind::clip:
            object.allow({"action", "norm"});
            action.value = object.at("norm").number();
            if (!(action.value > 0)) object.at("norm").fail("expected a bound above 0");
            break;
        case ActionKind::scale_gradient:
        case ActionKind::scale_weight:
            object.allow({"action", "parameter", "factor"});
            action.parameter = parameter_named(object.at("parameter"), c);
            action.value = read_factor(object.at("factor"));
            if (!c.parameters[action.parameter].trainable)
                object.at("parameter").fail("is frozen: there is nothing to edit but its bits");
            break;
        case ActionKind::freeze:
        case ActionKind::unfreeze:
            object.allow({"action", "parameter"});
            action.parameter = parameter_named(object.at("parameter"), c);
            break;
        default: object.allow({"action"});
    }
    return action;
}

// Orders that have no meaning are refused here; docs/specification.md, Programs, says which.
class ProgramReader {
  public:
    ProgramReader(const scenarios::JsonReader& object, Case& c) : case_(c) {
        for (const scenarios::JsonReader& item : object.at("program").items()) {
            if (item.json().is_string() && item.text() == "window") {
                for (int k = 0; k < c.micro_steps; ++k) add(item, {ActionKind::micro_step});
                add(item, {ActionKind::step});
            } else if (item.json().is_string()) {
                Action action{scenarios::read_named<ActionKind>(item, kActionKinds)};
                if (needs_an_object(action.kind))
                    item.fail(fmt::format("expected an object with \"action\": \"{}\" and more",
                                          name_of(action.kind)));
                add(item, std::move(action));
            } else {
                add(item, read_action(item, c));
            }
        }
        if (c.program.empty()) object.at("program").fail("no actions");
        if (std::ranges::count(c.program, ActionKind::reload, &Action::kind) > 1)
            object.at("program").fail("more than one reload");
    }

  private:
    static bool needs_an_object(ActionKind kind) { return kind >= ActionKind::rate; }

    void add(const scenarios::JsonReader& place, Action action) {
        const bool mid_window = micro_steps_ > 0 && micro_steps_ < case_.micro_steps;
        switch (action.kind) {
            case ActionKind::micro_step:
                if (++micro_steps_ > case_.micro_steps)
                    place.fail(fmt::format("a window has {} micro-steps", case_.micro_steps));
                break;
            case ActionKind::step:
                if (mid_window)
                    place.fail(fmt::format("a step after {} of {} micro-steps", micro_steps_,
                                           case_.micro_steps));
                micro_steps_ = 0;
                break;
            case ActionKind::zero_grad: micro_steps_ = 0; break;
            case ActionKind::clip:
            case ActionKind::scale_gradient:
                if (micro_steps_ < case_.micro_steps)
                    place.fail(fmt::format("a {} before the window's last micro-step",
                                           name_of(action.kind)));
                break;
            case ActionKind::evaluate:
            case ActionKind::read: break;
            case ActionKind::reload:
            case ActionKind::load:
                if (std::ranges::count(case_.program, ActionKind::rate, &Action::kind) > 0)
                    place.fail(
                        "a load after a change of a rate: trainers differ in whether a "
                        "checkpoint holds it");
                if (action.kind == ActionKind::load &&
                    std::ranges::count(case_.program, ActionKind::reload, &Action::kind) > 0)
                    place.fail("a load behind a reload: another process has saved");
                if (action.kind == ActionKind::load &&
                    std::ranges::count(case_.program, ActionKind::save, &Action::kind) == 0)
                    place.fail("a load before any save");
                [[fallthrough]];
            default:
                if (micro_steps_ > 0)
                    place.fail(fmt::format("a {} in the middle of a window", name_of(action.kind)));
        }
        case_.program.push_back(std::move(action));
        if (case_.program.size() > kMostActions)
            place.fail(fmt::format("more than {} actions", kMostActions));
    }

    Case& case_;
    int micro_steps_ = 0;  // of the open window
};

Injection read_injection(const scenarios::JsonReader& object, const Case& c) {
    object.allow({"micro_step", "rank", "parameter", "element", "value"});
    Injection injection;
    const auto micro_steps = std::ranges::count(c.program, ActionKind::micro_step, &Action::kind);
    injection.micro_step =
        static_cast<std::size_t>(object.at("micro_step").integer(0, micro_steps - 1));
    // The last rank is named by -1.
    const auto rank = static_cast<int>(object.at("rank").integer(-1, kMostRanks - 1));
    injection.rank = rank < 0 ? c.ranks - 1 : std::min(rank, c.ranks - 1);
    injection.parameter = parameter_named(object.at("parameter"), c);
    injection.element = static_cast<std::size_t>(object.at("element").integer(
        0, static_cast<std::int64_t>(c.parameters[injection.parameter].elements()) - 1));
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double values[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
    injection.value = values[object.at("value").choice({"inf", "-inf", "nan"})];
    return injection;
}

TransportCase read_transport(const scenarios::JsonReader& object, int ranks) {
    object.allow({"type", "count", "misalignment_bytes", "in_place"});
    TransportCase transport;
    try {
        transport.type = memory::dtype_from_name(object.at("type").text());
    } catch (const std::invalid_argument& error) {
        object.at("type").fail(error.what());
    }
    // Every rank keeps what all give it, as doubles; the inputs are multiples of N up to 5 N.
    constexpr std::int64_t kMostKept = 1 << 24;
    transport.count = static_cast<std::size_t>(
        object.at("count").integer(0, kMostKept / (std::int64_t{ranks} * ranks)));
    if (transport.type == memory::DType::int8 && ranks > 25)
        object.at("type").fail("the inputs for more than 25 ranks do not fit into int8");
    if (object.has("misalignment_bytes"))
        transport.misalignment_bytes =
            static_cast<std::size_t>(object.at("misalignment_bytes").integer(0, 64));
    if (object.has("in_place")) transport.in_place = object.at("in_place").boolean();
    return transport;
}

// The transformer's sizes, and beside them how it is trained.
TransformerCase read_transformer(const scenarios::JsonReader& object) {
    const scenarios::JsonReader sizes = object.at("transformer");
    sizes.allow({"family", "layers", "hidden", "heads", "kv_heads", "feed_forward", "vocabulary",
                 "sequence", "dropout"});
    scenarios::Json document = sizes.json();
    document["format"] = "zeroproof model";
    document["version"] = 1;
    document["name"] = "case";
    TransformerCase transformer;
    try {
        transformer.model = scenarios::read_transformer_model(document.dump(), "the transformer");
    } catch (const scenarios::BadInput& error) {
        sizes.fail(error.what());
    }
    const auto integer = [&](const char* key, auto& value, std::int64_t lowest,
                             std::int64_t highest) {
        if (object.has(key))
            value =
                static_cast<std::decay_t<decltype(value)>>(object.at(key).integer(lowest, highest));
    };
    integer("samples", transformer.samples, 1, 1024);
    integer("tensor_parallel", transformer.tensor_parallel, 1, kMostRanks);
    integer("blocks_per_checkpoint", transformer.blocks_per_checkpoint, 0, 1024);
    if (object.has("checkpoints")) {
        const std::size_t where =
            object.at("checkpoints")
                .choice({"whole", "partitioned", "host", "partitioned on host"});
        transformer.partition_checkpoints = where == 1 || where == 3;
        transformer.offload_checkpoints = where >= 2;
    }
    if (object.has("contiguous_checkpoints"))
        transformer.contiguous_checkpoints = object.at("contiguous_checkpoints").boolean();
    const auto ranks = static_cast<std::size_t>(transformer.tensor_parallel);
    if (transformer.model.kv_heads % ranks != 0 || transformer.model.feed_forward % ranks != 0)
        object.at("tensor_parallel")
            .fail("does not divide the key and value heads and the feed-forward size");
    return transformer;
}

// The parameters and units that follow from a transformer's sizes. Where there are two groups, the
// first is of matrices.
void add_transformer_parameters(Case& c) {
    const scenarios::PlannedModel model = scenarios::planned_model(
        c.transformer->model, static_cast<std::size_t>(c.transformer->tensor_parallel));
    for (const scenarios::PlannedParameter& planned : model.parameters) {
        ParameterCase parameter;
        parameter.name = planned.name;
        parameter.shape = planned.shape;
        parameter.group = c.groups.size() > 1 && planned.shape.size() == 1 ? 1 : 0;
        c.parameters.push_back(std::move(parameter));
    }
    for (std::size_t u = 0; u < model.units.size(); ++u)
        c.units.push_back({fmt::format("unit {}", u), model.units[u]});
}

void read_scalars(const scenarios::JsonReader& object, Case& c) {
    const auto integer = [&](const char* key, auto& value, std::int64_t lowest,
                             std::int64_t highest) {
        if (object.has(key))
            value =
                static_cast<std::decay_t<decltype(value)>>(object.at(key).integer(lowest, highest));
    };
    integer("stage", c.stage, 0, 3);
    integer("ranks", c.ranks, 1, kMostRanks);
    integer("micro_steps", c.micro_steps, 1, kMostMicroSteps);
    integer("bucket_elements", c.bucket_elements, 1, kMostElements);
    integer("resume_ranks", c.resume_ranks, 0, kMostRanks);
    integer("resume_stage", c.resume_stage, -1, 3);
    integer("seed", c.seed, 0, std::numeric_limits<std::int64_t>::max());
    if (object.has("precision"))
        c.precision =
            static_cast<Precision>(object.at("precision").choice({"fp32", "bf16", "fp16"}));
    if (object.has("overlap")) c.overlap = object.at("overlap").boolean();
    if (object.has("prefetch")) c.prefetch = object.at("prefetch").boolean();
    if (object.has("clip_norm")) {
        c.clip_norm = object.at("clip_norm").number();
        if (c.clip_norm < 0) object.at("clip_norm").fail("negative");
    }
    if (object.has("model"))
        c.model = static_cast<Model>(object.at("model").choice({"dot", "echo"}));
    if (object.has("gradients"))
        c.gradients =
            static_cast<GradientKind>(object.at("gradients").choice({"exact", "rounding"}));
    if (object.has("surroundings"))
        c.surroundings =
            static_cast<Surroundings>(object.at("surroundings").choice({"plain", "hostile"}));
    if (object.has("features"))
        for (const scenarios::JsonReader& feature : object.at("features").items())
            c.features.push_back(feature.text());
    if (object.has("options")) {
        const scenarios::JsonReader options = object.at("options");
        if (!options.json().is_object()) options.fail("expected an object");
        for (const auto& [name, value] : options.json().items()) c.options[name] = value.dump();
    }
}

// Whether a run can be kept in memory, and scaled gradients in fp16.
void check_extent(const scenarios::JsonReader& object, const Case& c, std::size_t elements) {
    constexpr std::size_t kMostKept = std::size_t{1} << 28;
    const auto ranks = static_cast<std::size_t>(std::max(c.ranks, c.resume_ranks));
    if (elements * ranks > kMostKept / c.program.size())
        object.at("program").fail(
            fmt::format("{} elements on {} ranks after {} actions are too much to keep", elements,
                        ranks, c.program.size()));
    for (const int n : {c.ranks, c.resume_ranks})
        if (c.precision == Precision::fp16 && c.gradients == GradientKind::exact &&
            !Gradients::fits_fp16(c, n))
            object.fail(
                fmt::format("gradients of {} ranks, scaled by as much as the loss scale may "
                            "grow in this program, do not fit into fp16: start lower",
                            n));
}

}  // namespace

Case read_case(const scenarios::JsonReader& object) {
    object.allow({"family",
                  "purpose",
                  "stage",
                  "ranks",
                  "micro_steps",
                  "bucket_elements",
                  "resume_ranks",
                  "resume_stage",
                  "seed",
                  "precision",
                  "overlap",
                  "prefetch",
                  "clip_norm",
                  "model",
                  "gradients",
                  "surroundings",
                  "features",
                  "parameters",
                  "units",
                  "one_unit",
                  "reverse_parameters",
                  "groups",
                  "loss_scale",
                  "program",
                  "inject",
                  "transport",
                  "transformer",
                  "samples",
                  "tensor_parallel",
                  "blocks_per_checkpoint",
                  "checkpoints",
                  "contiguous_checkpoints",
                  "measured",
                  "options",
                  "id"});
    Case c;
    c.family = object.at("family").text();
    if (object.has("measured")) c.measured = object.at("measured").boolean();
    read_scalars(object, c);
    if (object.has("transport")) {
        object.allow({"family", "purpose", "ranks", "seed", "transport", "id"});
        c.transport = read_transport(object.at("transport"), c.ranks);
        return c;
    }
    if (object.has("groups"))
        for (const scenarios::JsonReader& group : object.at("groups").items())
            c.groups.push_back(read_group(group));
    else
        c.groups.emplace_back();
    if (c.groups.empty()) object.at("groups").fail("no group: leave the key out for a default one");
    if (object.has("loss_scale")) c.loss_scale = read_loss_scale(object.at("loss_scale"));
    std::size_t elements = 0;
    if (object.has("transformer")) {
        for (const char* other : {"parameters", "units", "one_unit", "reverse_parameters", "inject",
                                  "model", "gradients", "features"})
            if (object.has(other)) object.at(other).fail("a transformer brings its own");
        c.transformer = read_transformer(object);
        if (c.transformer->tensor_parallel > 1 &&
            (c.clip_norm > 0 || c.resume_ranks > 0 || c.resume_stage >= 0))
            object.at("tensor_parallel").fail("neither clips nor resumes where weights are cut");
        c.gradients = GradientKind::rounding;
        add_transformer_parameters(c);
        for (const ParameterCase& parameter : c.parameters) elements += parameter.elements();
        if (elements > kMostElements)
            object.at("transformer")
                .fail(fmt::format("more than {} elements in one case", kMostElements));
    }
    for (const scenarios::JsonReader& item :
         c.transformer ? std::vector<scenarios::JsonReader>{} : object.at("parameters").items()) {
        ParameterCase parameter = read_parameter(item, c);
        if (std::ranges::count(c.parameters, parameter.name, &ParameterCase::name))
            item.at("name").fail(fmt::format("two parameters are named \"{}\"", parameter.name));
        elements += parameter.elements();
        c.parameters.push_back(std::move(parameter));
        if (elements > kMostElements)
            item.fail(fmt::format("more than {} elements in one case", kMostElements));
    }
    if (c.parameters.empty()) object.at("parameters").fail("no parameters");
    for (const int ranks : {c.ranks, c.resume_ranks})
        if (c.gradients == GradientKind::exact && !Gradients::can_be_exact(c, ranks))
            object.fail(
                fmt::format("{} ranks times {} micro-steps have too large an odd factor for "
                            "exact gradients in {}",
                            ranks, c.micro_steps, name_of(c.precision)));
    if (!c.transformer) read_units(object, c);
    if (object.has("one_unit") && object.at("one_unit").boolean()) {
        UnitCase all{"all", {}};
        for (const UnitCase& unit : c.units)
            for (const std::size_t parameter : unit.parameters) {
                if (std::ranges::count(all.parameters, parameter))
                    object.at("one_unit").fail("several units use one parameter");
                all.parameters.push_back(parameter);
            }
        c.units = {all};
    }
    ProgramReader(object, c);
    check_extent(object, c, elements);
    if (object.has("inject"))
        for (const scenarios::JsonReader& injection : object.at("inject").items())
            c.injections.push_back(read_injection(injection, c));
    if (object.has("reverse_parameters") && object.at("reverse_parameters").boolean()) {
        std::ranges::reverse(c.parameters);
        const auto moved = [&](std::size_t& p) { p = c.parameters.size() - 1 - p; };
        for (Action& action : c.program) {
            moved(action.parameter);
            for (Unused& unused : action.unused) moved(unused.parameter);
        }
        for (UnitCase& unit : c.units) std::ranges::for_each(unit.parameters, moved);
        for (Injection& injection : c.injections) moved(injection.parameter);
    }
    return c;
}

}  // namespace zeroproof::suites
