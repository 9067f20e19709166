# id = "229"
# cause = "library_returns_cpu"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "BANK.get(self.kind, self.n_fft)"
# also_culprit = ["window", "opts['window']", "opts", "kw['window']", "BANK.cache[('hann', 16)]", "BANK.cache"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [1, 2]
# origin = "window=BANK.get(self.kind, self.n_fft)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "all(m.device == torch.device(DEV) for m in mels.values())"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "window=BANK.get(self.kind, self.n_fft)"
# new = "window=BANK.get(self.kind, self.n_fft).to(wave.device)"
# [rerun]
# cells = [3, 4, 5]

# %%
%%writefile winbank_ex229.py
# windows, straight from the numpy formulas
import numpy
import torch

_FORMULAS = {"hann": numpy.hanning, "hamming": numpy.hamming, "blackman": numpy.blackman}


class WindowBank:
    def __init__(self):
        self.cache = {}

    def get(self, kind, n):
        key = (kind, n)
        if key not in self.cache:
            self.cache[key] = torch.as_tensor(_FORMULAS[kind](n + 1)[:-1], dtype=torch.float32)
        return self.cache[key]

# %%
import sys
if '.' not in sys.path:
    sys.path.insert(0, '.')
import torch
from winbank_ex229 import WindowBank

BANK = WindowBank()

# %%
class Spectrogram(torch.nn.Module):
    def __init__(self, n_fft=16, kind='hann', power=2.):
        super().__init__()
        self.n_fft, self.kind, self.power = n_fft, kind, power

    def options(self, wave):
        return dict(n_fft=self.n_fft, hop_length=self.n_fft // 2, center=True, return_complex=True,
                    window=BANK.get(self.kind, self.n_fft))

    def forward(self, wave):
        opts = self.options(wave)
        return torch.stft(wave, **opts).abs() ** self.power

# %%
def tone(freq, n=128):
    return torch.sin(torch.arange(n) * freq).unsqueeze(0)

clips = {name: tone(f).to(DEV) for name, f in {'low': .1, 'mid': .7}.items()}
front_end = torch.nn.Sequential(Spectrogram(), torch.nn.Linear(9, 4)).to(DEV)

# %%
mels = {}
for name, clip in clips.items():
    spec = front_end[0](clip)
    mels[name] = front_end[1](spec.transpose(1, 2)).detach().abs().log1p()
