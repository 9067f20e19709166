# id = "398"
# cause = "to_numpy"
# also_causes = []
# culprit = "ranks"
# also_culprit = ["ranks_of_hits(scores, held_out)"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "ranks = ranks_of_hits(scores, held_out)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "set(report) == {'recall@3', 'ndcg@3'} and all(0 <= float(v) <= 1 for v in report.values()) and model.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "ranks = ranks_of_hits(scores, held_out)"
# new = "ranks = ranks_of_hits(scores, held_out).cpu()"
# [rerun]
# cells = [4, 5]

# %%
import numpy as np
import torch

# %%
METRICS = {}

def metric(name, k):
    def register(fn):
        METRICS[f"{name}@{k}"] = lambda ranks: fn(ranks, k)
        return fn
    return register

@metric("recall", 3)
def recall(ranks, k):
    return float((ranks <= k).sum()) / len(ranks)

@metric("ndcg", 3)
def ndcg(ranks, k):
    places = np.asarray(ranks, dtype=np.float64)
    return np.sum(1.0 / np.log2(places[places <= k] + 1)) / len(places)

# %%
def ranks_of_hits(scores, held_out):
    """1 = the held out item is on top"""
    mine = scores.gather(1, held_out.unsqueeze(1))
    return (scores > mine).sum(1) + 1

# %%
@torch.no_grad()
def evaluate(model, histories, held_out):
    scores = model(histories.to(model.weight.device))
    held_out = held_out.to(scores.device)
    ranks = ranks_of_hits(scores, held_out)
    return {name: fn(ranks) for name, fn in METRICS.items()}

# %%
model = torch.nn.Linear(9, 9, bias=False).to(DEV)      # item-item similarities
report = evaluate(model, torch.eye(9), torch.arange(9))
print(report)
