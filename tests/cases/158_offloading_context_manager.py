# id = "158"
# cause = "framework_moved_model"
# also_causes = ["model_not_moved"]
# culprit = "text_encoder"
# also_culprit = ["text_encoder.weight", "te"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [1, 2]
# origin = "with on(text_encoder, DEV) as te:"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "only in an object attribute"
# expect_after_fix = "image2.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "on(vae_decoder, DEV):"
# new = "on(vae_decoder, DEV), on(text_encoder, DEV):"

# %%
from contextlib import contextmanager
import torch
from torch import nn

@contextmanager
def on(module, device, home=HOST):
    """keep a big module on the card only while it is needed"""
    module.to(device)
    try:
        yield module
    finally:
        module.to(home)

# %%
text_encoder = nn.Embedding(12, 6)
vae_decoder = nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 3))

# %%
with torch.no_grad():
    with on(text_encoder, DEV) as te:
        cond = te(torch.tensor([[1, 2, 3]], device=DEV))
    with on(vae_decoder, DEV):
        image = vae_decoder(cond).sigmoid()

# %%
prompt2 = torch.tensor([[4, 5, 6]], device=DEV)
with torch.no_grad(), on(vae_decoder, DEV):
    image2 = vae_decoder(text_encoder(prompt2)).sigmoid()
