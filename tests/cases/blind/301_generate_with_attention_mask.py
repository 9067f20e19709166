# id = "301"
# cause = "input_not_moved"
# also_causes = []
# culprit = "enc.attention_mask"
# also_culprit = ["enc", "enc['attention_mask']", "attention_mask", "model_kwargs['attention_mask']", "model_kwargs", "attention_mask.unsqueeze(-1)"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [3]
# origin = "return model.generate(enc.input_ids.to(model.device), attention_mask=enc.attention_mask, **kw)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "tokens.device == torch.device(DEV) and tokens.shape == (3, 11)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "attention_mask=enc.attention_mask,"
# new = "attention_mask=enc.attention_mask.to(model.device),"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

prompts = ["hello", "hey you", "hi"]

# %%
class BatchEncoding(dict):
    """enc.input_ids and enc['input_ids'] are the same"""
    __getattr__ = dict.__getitem__

class CharTokenizer:
    pad_id = 0
    def __init__(self, texts):
        self.vocab = {c: i for i, c in enumerate(sorted(set("".join(texts))), start=1)}

    def __call__(self, texts):
        rows = [[self.vocab[c] for c in t] for t in texts]
        n = max(map(len, rows))
        ids = torch.tensor([[self.pad_id] * (n - len(r)) + r for r in rows])     # left padding
        return BatchEncoding(input_ids=ids, attention_mask=(ids != self.pad_id).long())

# %%
class TinyLM(nn.Module):
    def __init__(self, vocab, d=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.mix = nn.GRU(d, d, batch_first=True)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    @property
    def device(self):
        return self.lm_head.weight.device

    def forward(self, input_ids, attention_mask=None):
        h = self.wte(input_ids)
        if attention_mask is not None:
            h = h * attention_mask.unsqueeze(-1)
        return self.lm_head(self.mix(h)[0])

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=4, **model_kwargs):
        for _ in range(max_new_tokens):
            nxt = self(input_ids, **model_kwargs)[:, -1].argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, nxt], dim=1)
            if "attention_mask" in model_kwargs:
                m = model_kwargs["attention_mask"]
                model_kwargs["attention_mask"] = torch.cat([m, m.new_ones(m.size(0), 1)], dim=1)
        return input_ids

# %%
tokenizer = CharTokenizer(prompts)
model = TinyLM(len(tokenizer.vocab) + 1).to(DEV).eval()

def complete(texts, **kw):
    enc = tokenizer(texts)
    # without the mask: "The attention mask and the pad token id were not set"
    return model.generate(enc.input_ids.to(model.device), attention_mask=enc.attention_mask, **kw)

# %%
tokens = complete(prompts, max_new_tokens=4)
