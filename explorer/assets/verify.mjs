/**
 * "Verify in this browser": the reader's trusted header lies in the browser's own storage, proofs and
 * headers come from the explorer and are believed in nothing (light/verify-proof.mjs).
 */
import { jsonOf, Unanswered } from "./answers.mjs";
import { toHex } from "./light/bytes.mjs";
import { assertCanCheck, checkSelf, followFrom, readSigned } from "./light/headers.mjs";
import { verifyProof } from "./light/verify-proof.mjs";

const PIN_KEY = "causeway-trusted-header";

/** Answers of a node, as the explorer passes them on. */
const source = {
  header: (height) => jsonOf(`/proof/header/${height}`),
  headers: (to) => jsonOf(`/proof/headers/${to}`),
};

/** Shows a sentence and, below it, what is proven. */
function show(place, kind, sentence, proven = {}) {
  place.className = kind;
  place.replaceChildren(document.createTextNode(sentence));
  const list = document.createElement("dl");
  for (const [name, value] of Object.entries(proven)) {
    const term = document.createElement("dt");
    const fact = document.createElement("dd");
    term.textContent = name;
    fact.textContent = value;
    list.append(term, fact);
  }
  if (list.childElementCount > 0) place.append(list);
}

function readPin() {
  try {
    const pin = JSON.parse(localStorage.getItem(PIN_KEY) ?? "null");
    return pin !== null && Number.isSafeInteger(pin.height) && /^[0-9a-f]{64}$/.test(pin.hash)
      ? pin
      : undefined;
  } catch {
    return undefined;
  }
}

/** Shows the button of a page, and what came of pressing it. */
function prepareControl(control) {
  const { verify: kind, url, running, held, refused, unanswered, unpinned } = control.dataset;
  const button = control.querySelector("[data-start]");
  const result = control.querySelector("[data-result]");
  const subject = url.split("/").at(-1).toLowerCase();
  button.hidden = false;
  button.addEventListener("click", async () => {
    const pin = readPin();
    if (pin === undefined) return show(result, "refused", unpinned);
    button.disabled = true;
    show(result, "", running);
    try {
      const { chainId } = pin;
      const expected = { chainId, nowMs: Date.now(), kind, subject };
      const proof = await jsonOf(url);
      show(result, "held", held, await verifyProof(proof, pin, source, expected));
    } catch (error) {
      const isRefuted = !(error instanceof Unanswered);
      show(result, "refused", `${isRefuted ? refused : unanswered} ${error.message}`);
    } finally {
      button.disabled = false;
    }
  });
}

/** The form in which a trusted header is chosen. */
function preparePin(form) {
  const { pin: chainId, pinned, unpinned, unanswered, wrong } = form.dataset;
  const result = form.querySelector("[data-result]");
  const { height, hash } = form.elements;
  const tell = () => {
    const pin = readPin();
    const text = pin === undefined ? unpinned : pinned;
    const shown = pin === undefined ? {} : pin;
    show(
      result,
      pin === undefined ? "" : "held",
      text.replace("{height}", shown.height).replace("{hash}", (shown.hash ?? "").toUpperCase()),
    );
  };
  const keep = async (answer, wanted) => {
    const block = await readSigned(answer);
    await checkSelf(block, chainId);
    const found = { chainId, height: block.height, hash: toHex(block.hash) };
    if (wanted !== undefined) {
      const expected = { chainId, nowMs: Date.now() };
      await followFrom({ chainId, ...wanted }, block, source, expected);
    }
    localStorage.setItem(PIN_KEY, JSON.stringify(found));
    tell();
  };
  form.hidden = false;
  tell();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = {
      height: Number(height.value),
      hash: hash.value.trim().replace(/^0x/i, "").toLowerCase(),
    };
    try {
      await keep(await source.header(wanted.height), wanted);
    } catch (error) {
      const isWrong = !(error instanceof Unanswered);
      show(result, "refused", `${isWrong ? wrong : unanswered} ${error.message}`);
    }
  });
  form.querySelector("[data-newest]").addEventListener("click", async () => {
    try {
      await keep(await source.header("newest"));
    } catch (error) {
      const isUnanswered = error instanceof Unanswered;
      show(result, "refused", `${isUnanswered ? `${unanswered} ` : ""}${error.message}`);
    }
  });
}

/** Says that nothing can be checked here, in the place of what would ask for it. */
function refuse(part, { message }) {
  const result = part.querySelector("[data-result]");
  show(result, "refused", `${part.dataset.unable} ${message}`);
  if (!part.hidden) return;
  part.replaceChildren(result);
  part.hidden = false;
}

const fault = await assertCanCheck().catch((error) => error);
const prepare = (selector, preparePart) => {
  for (const part of document.querySelectorAll(selector)) {
    if (fault === undefined) preparePart(part);
    else refuse(part, fault);
  }
};
prepare("[data-verify]", prepareControl);
prepare("[data-pin]", preparePin);
