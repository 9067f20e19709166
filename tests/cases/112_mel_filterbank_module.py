# id = "112"
# cause = "model_not_moved"
# also_causes = []
# culprit = "to_mel"
# also_culprit = ["to_mel.mel_scale", "self.mel_scale", "self.fb", "to_mel.mel_scale.fb"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [1]
# origin = "to_mel = ToMel()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "e.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "to_mel = ToMel()"
# new = "to_mel = ToMel().to(DEV)"
# [rerun]
# cells = [2, 4]

# %%
import torch
from torch import nn

class MelScale(nn.Module):
    def __init__(self, n_mels=6, n_freq=17):
        super().__init__()
        fb = torch.rand(n_freq, n_mels).softmax(0)
        self.register_buffer("fb", fb, persistent=False)
    def forward(self, spec):
        return torch.matmul(spec.transpose(-1, -2), self.fb).transpose(-1, -2)

class ToMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel_scale = MelScale()
    def forward(self, wav):
        z = torch.stft(wav, 32, window=torch.hann_window(32, device=wav.device), return_complex=True)
        return self.mel_scale(z.abs() ** 2).add(1e-6).log()

# %%
to_mel = ToMel()
kws = nn.GRU(6, 10, batch_first=True).to(DEV)

# %%
def embed(wave):
    wave = wave.to(DEV)
    m = to_mel(wave)
    return kws(m.transpose(1, 2))[0][:, -1]

# %%
e = embed(torch.randn(2, 160))
