# id = "151"
# cause = "label_not_moved"
# also_causes = ["nested_batch_partly_moved", "input_not_moved"]
# culprit = "batch['labels']"
# also_culprit = ["labels", "labels.view(-1)", "batch", "rows[steps]", "rows", "rows[0]['labels']"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [1, 2]
# origin = "keys=(\"input_ids\", \"token_type_ids\", \"attention_mask\")"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "logits.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "(v.to(DEV) if k in keys else v)"
# new = "v.to(DEV)"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn
import torch.nn.functional as F

class ForSequenceClassification(nn.Module):
    def __init__(self, vocab=20, hidden=8, num_labels=3):
        super().__init__()
        self.wte, self.score = nn.Embedding(vocab, hidden), nn.Linear(hidden, num_labels)
        self.num_labels = num_labels
    def forward(self, input_ids, labels=None):
        logits = self.score(self.wte(input_ids).mean(1))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.view(-1, self.num_labels), labels.view(-1))
        return {"loss": loss, "logits": logits}

# %%
rows = [{"input_ids": torch.randint(20, (2, 5)), "labels": torch.tensor([0, 2])} for _ in range(3)]
hf = ForSequenceClassification().to(DEV)

# %%
def prepare_inputs(batch, keys=("input_ids", "token_type_ids", "attention_mask")):
    return {k: (v.to(DEV) if k in keys else v) for k, v in batch.items()}

# %%
steps = 0
while steps < 2:
    batch = prepare_inputs(rows[steps])
    outputs = hf(**batch)
    outputs["loss"].backward()
    steps += 1
logits = outputs["logits"]
