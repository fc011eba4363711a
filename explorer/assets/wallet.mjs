/**
 * Hands a call that the page shows to the wallet in this browser (EIP-1193), which shows it once more
 * and signs. Without a wallet the button stays hidden: the command beside it is for any other.
 */

const wallet = window.ethereum;

for (const part of document.querySelectorAll("[data-wallet]")) {
  const button = part.querySelector("[data-send]");
  const result = part.querySelector("[data-result]");
  if (wallet === undefined || button === null || result === null) continue;
  button.hidden = false;
  button.addEventListener("click", () => void send(part, button, result));
}

/** Asks the wallet, and says what came of it. */
async function send(part, button, result) {
  const { to, data, value, chain, otherChain, sent, refused } = part.dataset;
  button.disabled = true;
  try {
    const [from] = await wallet.request({ method: "eth_requestAccounts" });
    // Behind the question for accounts: in its window the network may be chosen, too.
    const actual = await wallet.request({ method: "eth_chainId" });
    if (BigInt(actual) !== BigInt(chain)) {
      result.className = "refused";
      result.textContent = `${otherChain} ${BigInt(chain)}`;
      return;
    }
    const hash = await wallet.request({
      method: "eth_sendTransaction",
      // Wallets refuse what is for another chain than theirs by then.
      params: [{ from, to, data, value, chainId: chain }],
    });
    result.className = "held";
    result.textContent = `${sent} `;
    const link = document.createElement("a");
    if (/^0x[0-9a-f]{64}$/i.test(hash)) link.href = `/tx/${hash}`;
    link.textContent = hash;
    result.append(link);
  } catch (error) {
    result.className = "refused";
    result.textContent = `${refused} ${String(error?.message ?? error).slice(0, 400)}`;
  } finally {
    button.disabled = false;
  }
}
