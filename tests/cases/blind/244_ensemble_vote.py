# id = "244"
# cause = "stray_in_collection"
# also_causes = ["model_split_multi_gpu", "model_not_moved"]
# culprit = "votes"
# also_culprit = ["votes[1]", "list(self.votes(x))", "self.votes(x)", "self.members", "self.members[1]", "ensemble.members[1]", "m", "member", "m(x.to(where(m)))", "ensemble.members"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "yield m(x.to(where(m))).softmax(-1)"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "mean_vote.device == torch.device(DEV) and disagreement.shape == (4,)"
# needs = "DEV2"
# # the last member was trained on the other card: its vote has to come home before the stack (moving the member is as good)
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "yield m(x.to(where(m))).softmax(-1)"
# new = "yield m(x.to(where(m))).softmax(-1).to(x.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn

def where(module):
    return next(module.parameters()).device

# %%
class Ensemble:
    def __init__(self, members):
        self.members = members

    @torch.no_grad()
    def votes(self, x):
        for m in self.members:
            yield m(x.to(where(m))).softmax(-1)

    def predict(self, x):
        votes = list(self.votes(x))
        votes = torch.stack(votes)
        return votes.mean(0), votes.std(0).sum(-1)

# %% three seeds; the third was trained last night on the other card
def member(seed, card):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 3)).eval()
    for p in net.parameters():
        p.requires_grad_(False)
    return net.to(card)

plan = [(1, DEV), (2, DEV), (3, DEV2)]
ensemble = Ensemble([member(s, c) for s, c in plan])
unlabelled = torch.linspace(-2, 2, 20).reshape(4, 5).to(DEV)

# %%
mean_vote, disagreement = ensemble.predict(unlabelled)
to_label = disagreement.topk(2).indices
