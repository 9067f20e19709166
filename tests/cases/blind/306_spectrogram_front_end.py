# id = "306"
# cause = "model_not_moved"
# also_causes = []
# culprit = "self.frontend"
# also_culprit = ["spotter.frontend", "self.window", "self.frontend.window", "spotter.frontend.window"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "spotter = KeywordSpotter(LogMel(sr=800), SmallCNN().to(DEV), words)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "scores.device == torch.device(DEV) and scores.shape == (2, 3)"
# [[ref_fix]]
# op = "run"
# code = "spotter.frontend.to(DEV)"

# %%
import torch
import torch.nn as nn
words = ['yes', 'no', 'stop']

# %%
class LogMel(nn.Module):
    def __init__(self, sr, n_fft=64, hop=32, n_mels=8):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer('window', torch.hann_window(n_fft))
        freqs = torch.linspace(0, sr / 2, n_fft // 2 + 1)
        mels = torch.linspace(0, sr / 2, n_mels + 2)
        up = (freqs - mels[:-2, None]) / (mels[1:-1] - mels[:-2])[:, None]
        down = (mels[2:, None] - freqs) / (mels[2:] - mels[1:-1])[:, None]
        self.register_buffer('fb', torch.minimum(up, down).clamp(min=0))

    def forward(self, wav):
        spec = torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True).abs() ** 2
        return (self.fb @ spec + 1e-6).log()

# %%
class SmallCNN(nn.Module):
    def __init__(self, n_mels=8, n_out=3):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 6, 3)
        self.out = nn.Linear(6, n_out)
    def forward(self, s):
        return self.out(self.conv(s).relu().amax(-1))

class KeywordSpotter:
    """glue: wave -> log-mel -> network -> word"""
    def __init__(self, frontend, net, words):
        self.frontend, self.net, self.words = frontend, net.eval(), words

    @torch.no_grad()
    def scores(self, wav):
        feats = self.frontend(wav)
        return self.net(feats).softmax(-1)

    def __call__(self, wav):
        return [self.words[i] for i in self.scores(wav).argmax(-1).tolist()]

# %%
spotter = KeywordSpotter(LogMel(sr=800), SmallCNN().to(DEV), words)
t = torch.arange(800) / 800
clips = torch.stack([torch.sin(2 * torch.pi * f * t) for f in (60.0, 220.0)])

# %%
scores = spotter.scores(clips.to(DEV))
