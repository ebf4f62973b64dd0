#include "reference/layouts.h"

#include <algorithm>
#include <array>
#include <map>

#include "reference/kernels.h"

namespace zeroproof::reference {

FlatParameters one_flat(const Model& model, bool trainable, std::size_t owners,
                        std::size_t bucket_elements) {
    std::vector<std::size_t> members;
    for (std::size_t p = 0; p < model.parameters().size(); ++p)
        if (model.parameters()[p].trainable == trainable) members.push_back(p);
    return {model.parameters(), std::move(members), owners, bucket_elements};
}

std::vector<FlatParameters> flats_by_use(const Model& model, bool trainable, std::size_t owners,
                                         std::size_t bucket_elements) {
    // Ordered by the units, so that the layout is the same on all ranks.
    std::map<std::vector<std::size_t>, std::vector<std::size_t>> members_by_users;
    for (std::size_t p = 0; p < model.parameters().size(); ++p) {
        if (model.parameters()[p].trainable != trainable) continue;
        std::vector<std::size_t> users;
        for (std::size_t u = 0; u < model.units().size(); ++u)
            if (std::ranges::count(model.units()[u].parameters, p)) users.push_back(u);
        members_by_users[users].push_back(p);
    }
    std::vector<FlatParameters> flats;
    for (const auto& [users, members] : members_by_users)
        flats.emplace_back(model.parameters(), members, owners, bucket_elements);
    return flats;
}

void fill_initial_weights(const Model& model, std::size_t parameter, std::size_t begin,
                          Tensor target) {
    std::array<float, 256> block;
    for (std::size_t first = 0; first < target.elements; first += block.size()) {
        const std::span values(block.data(), std::min(block.size(), target.elements - first));
        model.initial_weights(parameter, begin + first, values);
        cast_into({target.type, target.data + first * memory::size_of(target.type), values.size()},
                  values);
    }
}

}  // namespace zeroproof::reference
