# id = "251"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "ids"
# also_culprit = ["codec.encode(word)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "return self.pad(ids)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "len(guesses) == 4 and all(g.device == torch.device(DEV) for g in guesses.values())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return self.pad(ids)"
# new = "return self.pad(ids).to(self.device)"
# [rerun]
# cells = [2, 4, 5]

# %%
# guess the language of a single word from its character trigrams
import string
import torch
import torch.nn as nn

LANGS = ["en", "fr", "de"]
ALPHABET = {c: i + 1 for i, c in enumerate(string.ascii_lowercase)}

# %%
class Codec:
    min_len = 3

    def __init__(self, device):
        self.device = device

    def pad(self, ids):
        missing = self.min_len - ids.numel()
        return torch.cat([ids, ids.new_zeros(missing)])

    def encode(self, word):
        ids = torch.tensor([ALPHABET[c] for c in word.lower() if c in ALPHABET])
        if len(ids) < self.min_len:          # the trigram conv needs three characters
            return self.pad(ids)
        return ids.to(self.device)

# %%
class WordNet(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.char = nn.Embedding(27, dim, padding_idx=0)
        self.tri = nn.Conv1d(dim, 8, 3)
        self.out = nn.Linear(8, len(LANGS))

    def forward(self, ids):
        z = self.char(ids).t()[None]
        return self.out(self.tri(z).amax(-1))[0]

@torch.inference_mode()
def guess(model, codec, word):
    ids = codec.encode(word)
    return model(ids).softmax(-1)

# %%
codec = Codec(DEV)
model = WordNet().to(DEV).eval()
guess(model, codec, "Straße".replace("ß", "ss"))

# %%
guesses = {w: guess(model, codec, w) for w in "guten Tag le monde".split()}
for w, p in guesses.items():
    print(f"{w:8s}", LANGS[int(p.argmax())])
