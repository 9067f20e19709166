# id = "101"
# cause = "input_not_moved"
# also_causes = []
# culprit = "inputs"
# also_culprit = ["inputs['input_ids']", "inputs['attention_mask']"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [2]
# origin = "inputs = tokenizer([\"the film was great\", \"awful plot and awful acting\"], return_tensors=\"pt\")"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "probs.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "    logits = model(**inputs)"
# new = "    logits = model(**{k: v.to(device) for k, v in inputs.items()})"

# %%
import torch
from torch import nn

device = torch.device(DEV)
vocab = {w: i for i, w in enumerate("[PAD] the film was great awful plot and acting".split())}

# %%
class TinyTokenizer:
    """calls like the ones of the big libraries: a dict of tensors comes back"""
    def __call__(self, texts, return_tensors="pt"):
        rows = [[vocab.get(w, 0) for w in t.lower().split()] for t in texts]
        n = max(map(len, rows))
        ids = torch.tensor([r + [0] * (n - len(r)) for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}

class Classifier(nn.Module):
    def __init__(self, n_words, dim=12, n_labels=2):
        super().__init__()
        self.embeddings = nn.Embedding(n_words, dim)
        self.out = nn.Linear(dim, n_labels)

    def forward(self, input_ids, attention_mask=None):
        h = self.embeddings(input_ids)
        m = attention_mask.unsqueeze(-1).float()
        return self.out((h * m).sum(1) / m.sum(1))

# %%
tokenizer = TinyTokenizer()
model = Classifier(len(vocab)).to(device)
model.eval();

# %%
inputs = tokenizer(["the film was great", "awful plot and awful acting"], return_tensors="pt")
with torch.no_grad():
    logits = model(**inputs)
probs = logits.softmax(-1)
