# id = "290"
# cause = "input_not_moved"
# also_causes = ["stray_in_collection", "checkpoint_location"]
# culprit = "bank[task]"
# also_culprit = ["bank", "bank['summarize']", "bank[\"summarize\"]"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4, 5]
# origin = "return {name: torch.tensor(rows) for name, rows in json.load(f).items()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "in no frame: it came from a generator that is used up"
# expect_after_fix = "answer.device == torch.device(DEV) and answer.shape == (2, 5)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.tensor(rows) for"
# new = "torch.tensor(rows, device=DEV) for"
# [rerun]
# cells = [2, 4, 5]

# %%
import io, json
import torch
from torch import nn

# %%
saved = io.StringIO(json.dumps({"translate": [[0.1, 0.2, 0.3]], "summarize": [[0.5, 0.1, 0.0], [0.2, 0.2, 0.9]]}))

def read_prompts(f):
    """prompt tuning: the learned rows of every task, exported as json"""
    f.seek(0)
    return {name: torch.tensor(rows) for name, rows in json.load(f).items()}

bank = read_prompts(saved)

# %%
def pieces(task, body, bank, sep):
    yield bank[task].expand(len(body), -1, -1)
    yield sep.expand(len(body), 1, -1)
    yield body

class Prompted(nn.Module):
    def __init__(self, vocab, d=3, out=5):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.sep = nn.Parameter(torch.zeros(d))
        self.enc = nn.GRU(d, 4, batch_first=True)
        self.head = nn.Linear(4, out)

    def forward(self, ids, task, bank):
        x = torch.cat(tuple(pieces(task, self.tok(ids), bank, self.sep)), dim=1)
        return self.head(self.enc(x)[1][-1])

# %%
t5 = Prompted(vocab=12).to(DEV)

# %%
ids = torch.randint(12, (2, 4), device=DEV)
answer = t5(ids, "summarize", bank)
