# id = "343"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "decoder_input"
# also_culprit = ["torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS_token)", "torch.empty(batch_size, 1, dtype=torch.long)", "input"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "decoder_input = torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS_token)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "first user frame"
# expect_after_fix = "logp.device == torch.device(DEV) and logp.shape == (4, 6, 12)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.empty(batch_size, 1, dtype=torch.long)"
# new = "torch.empty(batch_size, 1, dtype=torch.long, device=encoder_outputs.device)"
# [rerun]
# cells = [3, 4]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F
SOS_token, EOS_token = 0, 1
MAX_LENGTH = 6

# %%
class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)
    def forward(self, input):
        output, hidden = self.gru(self.dropout(self.embedding(input)))
        return output, hidden

# %%
class DecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS_token)
        decoder_hidden, decoder_outputs = encoder_hidden, []
        for i in range(MAX_LENGTH):
            step, decoder_hidden = self.forward_step(decoder_input, decoder_hidden)
            decoder_outputs.append(step)
            if target_tensor is not None:       # teacher forcing
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                decoder_input = step.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1)

    def forward_step(self, input, hidden):
        output = F.relu(self.embedding(input))
        output, hidden = self.gru(output, hidden)
        return self.out(output), hidden

# %%
encoder = EncoderRNN(15, 8).to(DEV)
decoder = DecoderRNN(8, 12).to(DEV)
src = torch.randint(2, 15, (4, 7)).to(DEV)
tgt = torch.randint(2, 12, (4, MAX_LENGTH)).to(DEV)
enc_out, enc_hidden = encoder(src)
logp = decoder(enc_out, enc_hidden, tgt)
