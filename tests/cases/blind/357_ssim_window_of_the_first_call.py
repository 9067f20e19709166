# id = "357"
# cause = "stale_cache"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.window"
# also_culprit = ["ssim.window", "window", "self._window_for(img1)"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "print('identical:', ssim(demo, demo).item())      # has to be 1"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "first user frame"
# expect_after_fix = "score.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "if self.window is None or self.channel != c:"
# new = "if self.window is None or self.channel != c or self.window.device != img.device:"
# [rerun]
# cells = [3, 4, 5]

# %%
import math
import torch
import torch.nn.functional as F

# %%
def gaussian(window_size, sigma):
    g = torch.tensor([math.exp(-(x - window_size // 2) ** 2 / (2.0 * sigma ** 2)) for x in range(window_size)])
    return g / g.sum()

def create_window(window_size, channel):
    w = gaussian(window_size, 1.5).unsqueeze(1)
    return (w @ w.t()).expand(channel, 1, window_size, window_size).contiguous()

# %%
class SSIM(torch.nn.Module):
    def __init__(self, window_size=5):
        super().__init__()
        self.window_size = window_size
        self.window, self.channel = None, None

    def _window_for(self, img):
        c = img.size(1)
        if self.window is None or self.channel != c:
            self.window = create_window(self.window_size, c).to(img.device)
            self.channel = c
        return self.window

    def forward(self, img1, img2):
        window = self._window_for(img1)
        blur = lambda t: F.conv2d(t, window, padding=self.window_size // 2, groups=self.channel)
        mu1, mu2 = blur(img1), blur(img2)
        s1, s2 = blur(img1 * img1) - mu1 ** 2, blur(img2 * img2) - mu2 ** 2
        s12 = blur(img1 * img2) - mu1 * mu2
        C1, C2 = 0.01 ** 2, 0.03 ** 2
        m = ((2 * mu1 * mu2 + C1) * (2 * s12 + C2)) / ((mu1 ** 2 + mu2 ** 2 + C1) * (s1 + s2 + C2))
        return m.mean()

# %%
ssim = SSIM()
demo = torch.rand(1, 3, 16, 16)
print('identical:', ssim(demo, demo).item())      # has to be 1

# %%
denoiser = torch.nn.Conv2d(3, 3, 3, padding=1).to(DEV)
clean = torch.rand(4, 3, 16, 16, device=DEV)
with torch.no_grad():
    score = ssim(denoiser(clean + 0.1 * torch.randn_like(clean)), clean)
