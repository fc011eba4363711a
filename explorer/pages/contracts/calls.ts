/**
 * A verified contract's functions: those that only read are called here, without a script; for the others
 * the bytes to sign are made, and signing is the reader's: by `cast`, or a wallet in the browser.
 */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { type AbiParameter, selectorOf, typeName } from "../../../chain/evm/abi/abi-types.js";
import type { Hex } from "../../../chain/hex.js";
import { hexToBytes, parseHex } from "../../../chain/hex.js";
import { tokenToAtoken, type Atoken } from "../../../chain/units.js";
import { decodeError } from "../../decode/abi.js";
import { decodeParameters, encodeTexts } from "../../decode/abi-codec.js";
import { type AbiItem, readAbi } from "../../decode/abi-items.js";
import { badRequest, PageError, notFound } from "../../../web/errors.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignName, foreignText } from "../../../web/html/format.js";
import { addressLink } from "../../html/chain-links.js";
import { code, facts, note } from "../../../web/html/parts.js";
import type { Page, PageRequest, PageRoute } from "../../server/page.js";
import type { CallAnswer } from "../../sources/chain-source.js";
import type { Texts } from "../../text/catalogue.js";
import type { VerifiedContract } from "../../verification/verified-store.js";
import { accountOf, contractTabs } from "./contract.js";
import { type PageContext, verifiedContract } from "../context.js";
import { decodedContent, rawData, valueList } from "../moves.js";

/** Functions of one contract that are shown. */
const MAX_FUNCTIONS = 200;

/** Functions without parameters that are called for a page, as far as there is time. */
const MAX_CALLS = 40;

/** Gas of a function that a reader chose. */
const CHOSEN_GAS = 5_000_000n;

/**
 * Gas of one that is called because it needs no parameters: far more than it takes to tell what is stored.
 * Nobody has asked for it, and it may do anything: with the dearest code that there is, this is an eighth of
 * a second of the node.
 */
const SHOWN_GAS = 200_000n;

/** Of these in one exchange, and after how long none is begun any more: the node answers others, too. */
const CALLS_AT_ONCE = 8;
const CALLS_MS = 1_500;

/** Parameters of a function that a form can have. */
const MAX_ARGUMENTS = 24;

/** Arguments are as long as a transaction's data may sensibly be. */
const MAX_FORM_BYTES = 256 * 1024;

const CALL_COST = 5;

const QUERY = ["f", "value", ...Array.from({ length: MAX_ARGUMENTS }, (_, index) => `a${index}`)];

/** "/read/<a>" and "/write/<a>". */
export function contractCallRoutes(context: PageContext): readonly PageRoute[] {
  const form = { maxBytes: MAX_FORM_BYTES, cost: CALL_COST };
  const common = { hasParameter: true, isCostly: true, query: QUERY, form };
  return [
    { path: "/read", ...common, handle: (request) => readPage(context, request) },
    { path: "/write", ...common, handle: (request) => writePage(context, request) },
  ];
}

/** A function that was chosen, with its bytes. */
interface Chosen {
  readonly item: AbiItem;
  readonly data: Hex;
}

async function contractOf(
  context: PageContext,
  { parameter, signal }: PageRequest,
): Promise<VerifiedContract> {
  const contract = await verifiedContract(context, accountOf(parameter), signal);
  if (contract === undefined) throw notFound("no verified contract at this address");
  return contract;
}

function functionsOf({ abi }: VerifiedContract, isRead: boolean): readonly AbiItem[] {
  return readAbi(abi)
    .filter((item) => item.kind === "function" && item.isRead === isRead)
    .filter(({ inputs }) => inputs.length <= MAX_ARGUMENTS)
    .slice(0, MAX_FUNCTIONS);
}

/** The call that a query asks for; a text where it cannot be made. @throws BAD_REQUEST */
function chosenOf(items: readonly AbiItem[], query: URLSearchParams): Chosen | string | undefined {
  const selector = query.get("f");
  if (selector === null) return undefined;
  const item = items.find((one) => selectorOf(one.hash) === selector);
  if (item === undefined) throw badRequest("no such function");
  const texts = item.inputs.map((_, index) => query.get(`a${index}`) ?? "");
  try {
    const body = encodeTexts(item.inputs, texts);
    return { item, data: parseHex(`${selector}${body.slice(2)}`) };
  } catch (error) {
    if (error instanceof PageError) return error.message;
    throw error;
  }
}

async function readPage(context: PageContext, request: PageRequest): Promise<Page> {
  const { query, t, signal } = request;
  const contract = await contractOf(context, request);
  const items = functionsOf(contract, true);
  const chosen = chosenOf(items, query);
  const selected = query.get("f");
  const called =
    selected === null
      ? items.filter(({ inputs }) => inputs.length === 0).slice(0, MAX_CALLS)
      : typeof chosen === "object"
        ? [chosen.item]
        : [];
  const datas = called.map((item) =>
    typeof chosen === "object" ? chosen.data : parseHex(selectorOf(item.hash)),
  );
  const head = await context.chain.head({ signal });
  const answers =
    selected === null
      ? await shownAnswers(context, contract.address, datas, signal)
      : await context.chain.callContract(contract.address, datas, { signal, gas: CHOSEN_GAS });
  const answerOf = (item: AbiItem) => answers[called.indexOf(item)];
  const errors = readAbi(contract.abi);
  return {
    ...(typeof chosen === "string" ? { status: 400 } : {}),
    title: t("readContract"),
    content: [
      contractTabs(contract.address, t),
      facts([
        [t("account"), addressLink(contract.address, t, false)],
        [t("asOfBlock"), head.height],
      ]),
      el("p", {}, t("readText")),
      items.length === 0 ? el("p", { class: "empty" }, t("noFunctions")) : undefined,
      items.map((item) => {
        const answer = answerOf(item);
        const isChosen = selectorOf(item.hash) === selected;
        return functionSection(item, t, [
          answer?.ok === true && !isChosen
            ? undefined
            : callForm("read", contract.address, item, { query, isChosen, button: t("call") }, t),
          isChosen && typeof chosen === "string" ? note("warning", foreignText(chosen)) : undefined,
          answer === undefined ? undefined : answerContent(item, answer, errors, t),
          answer?.ok === false && answer.data === "0x" && !isChosen
            ? el("p", {}, t("calledWithLittleGas", { gas: String(SHOWN_GAS) }))
            : undefined,
        ]);
      }),
    ],
  };
}

/** What functions answer that nobody chose; fewer than there are where they take long. */
async function shownAnswers(
  { chain, clock }: PageContext,
  account: Address,
  datas: readonly Hex[],
  signal: AbortSignal,
): Promise<readonly CallAnswer[]> {
  const endMs = clock.monotonicMs() + CALLS_MS;
  const answers: CallAnswer[] = [];
  while (answers.length < datas.length) {
    const some = datas.slice(answers.length, answers.length + CALLS_AT_ONCE);
    answers.push(...(await chain.callContract(account, some, { signal, gas: SHOWN_GAS })));
    if (clock.monotonicMs() >= endMs) break;
  }
  return answers;
}

function functionSection(item: AbiItem, t: Texts, content: Content): Content {
  const outputs = item.outputs.map(({ type }) => typeName(type)).join(", ");
  return el(
    "section",
    { class: "function" },
    el("h2", {}, el("bdi", {}, foreignName(item.name) || t("function"))),
    el(
      "p",
      {},
      code(foreignText(item.signature)),
      outputs === "" ? "" : ` → ${foreignText(outputs)}`,
    ),
    content,
  );
}

function answerContent(
  { outputs }: AbiItem,
  answer: CallAnswer,
  abi: readonly AbiItem[],
  t: Texts,
): Content {
  if (!answer.ok) {
    const error = decodeError(answer.data, abi);
    return [
      note("warning", t("callFailed"), " ", el("bdi", {}, foreignText(answer.reason))),
      error === undefined ? undefined : decodedContent(error, t, true),
    ];
  }
  const values = decodeParameters(outputs, hexToBytes(answer.data));
  if (values === undefined)
    return [note("warning", t("answerDoesNotFit")), rawData(answer.data, t)];
  return values.length === 0 ? el("p", {}, t("nothingReturned")) : valueList(values, t);
}

function callForm(
  page: "read" | "write",
  account: Address,
  item: AbiItem,
  about: { readonly query: URLSearchParams; readonly isChosen: boolean; readonly button: string },
  t: Texts,
): Content {
  const selector = selectorOf(item.hash);
  const input = (name: string, label: Content) => {
    const id = `${selector}-${name}`;
    const value = about.isChosen ? (about.query.get(name) ?? "") : "";
    const field = { id, name, value, autocomplete: "off", spellcheck: "false" };
    return el("p", {}, el("label", { for: id }, label), el("input", field));
  };
  return el(
    "form",
    { class: "stacked", method: "post", action: `/${page}/${toChecksumAddress(account)}` },
    item.inputs.map((parameter, index) => input(`a${index}`, parameterLabel(parameter, index))),
    item.isPayable ? input("value", t("valueToSend")) : undefined,
    el("button", { type: "submit", name: "f", value: selector }, about.button),
  );
}

function parameterLabel({ name, type }: AbiParameter, index: number): Content {
  return [el("bdi", {}, foreignName(name) || String(index)), ` (${foreignText(typeName(type))})`];
}

async function writePage(context: PageContext, request: PageRequest): Promise<Page> {
  const { query, t } = request;
  const contract = await contractOf(context, request);
  const items = functionsOf(contract, false);
  const chosen = chosenOf(items, query);
  const selected = query.get("f");
  const valueAtoken = valueOf(query);
  const isRefused = typeof chosen === "string" || valueAtoken === undefined;
  return {
    ...(isRefused ? { status: 400 } : {}),
    title: t("writeContract"),
    scripts: ["wallet"],
    content: [
      contractTabs(contract.address, t),
      facts([[t("account"), addressLink(contract.address, t, false)]]),
      note("warning", t("writeText")),
      items.length === 0 ? el("p", { class: "empty" }, t("noFunctions")) : undefined,
      items.map((item) => {
        const isChosen = selectorOf(item.hash) === selected;
        const isMade = isChosen && typeof chosen === "object" && valueAtoken !== undefined;
        return functionSection(item, t, [
          callForm("write", contract.address, item, { query, isChosen, button: t("makeCall") }, t),
          isChosen && typeof chosen === "string" ? note("warning", foreignText(chosen)) : undefined,
          isChosen && valueAtoken === undefined ? note("warning", t("valueWrong")) : undefined,
          isMade
            ? callContent(context, contract.address, { data: chosen.data, valueAtoken }, t)
            : undefined,
        ]);
      }),
    ],
  };
}

/** Undefined for a text that is no amount. */
function valueOf(query: URLSearchParams): bigint | undefined {
  const text = query.get("value")?.trim() ?? "";
  if (text === "") return 0n;
  try {
    const valueAtoken = tokenToAtoken(text);
    return valueAtoken >= 0n ? valueAtoken : undefined;
  } catch {
    return undefined;
  }
}

/** What is to be signed, for a shell and for a wallet. */
function callContent(
  { network, commandUrls }: PageContext,
  account: Address,
  { data, valueAtoken }: { readonly data: Hex; readonly valueAtoken: Atoken },
  t: Texts,
): Content {
  const to = toChecksumAddress(account);
  const value = valueAtoken === 0n ? "" : ` --value ${valueAtoken}wei`;
  const command =
    `cast send --rpc-url ${commandUrls.rpc} --chain ${network.evmChainId} --legacy --interactive` +
    `${value} ${to} ${data}`;
  const line = (text: string, label: string) =>
    el("pre", { tabindex: 0, role: "region", "aria-label": label }, el("code", {}, text));
  return el(
    "div",
    { class: "call" },
    el("h3", {}, t("calldata")),
    line(data, t("calldata")),
    el("h3", {}, t("castCommand")),
    line(command, t("castCommand")),
    el(
      "div",
      {
        "data-wallet": "",
        "data-to": to,
        "data-data": data,
        "data-value": `0x${valueAtoken.toString(16)}`,
        "data-chain": `0x${network.evmChainId.toString(16)}`,
        "data-other-chain": t("walletOtherChain"),
        "data-sent": t("walletSent"),
        "data-refused": t("walletRefused"),
      },
      el("button", { type: "button", hidden: true, "data-send": "" }, t("sendWithWallet")),
      el("div", { role: "status", "aria-live": "polite", "data-result": "" }),
    ),
  );
}
