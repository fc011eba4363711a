/** A contract's sources: the form with which anybody proves them, what became of it, and they themselves. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { decodeParameters } from "../../decode/abi-codec.js";
import { readAbi } from "../../decode/abi-items.js";
import { hexToBytes } from "../../../chain/hex.js";
import { readAddress } from "../../decode/identifiers.js";
import { badRequest, PageError, notFound } from "../../../web/errors.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignName, foreignText } from "../../../web/html/format.js";
import { addressLink, transactionLink } from "../../html/chain-links.js";
import { textBlock } from "../../html/text-block.js";
import {
  badge,
  code,
  type Fact,
  facts,
  note,
  section,
  table,
  time,
} from "../../../web/html/parts.js";
import type { Page, PageAnswer, PageRequest, PageRoute } from "../../server/page.js";
import type { Texts } from "../../text/catalogue.js";
import type { RefusalCode } from "../../verification/refusal.js";
import { publishedInput } from "../../verification/standard-input.js";
import type { VerifiedContract } from "../../verification/verified-store.js";
import type { Verifier } from "../../verification/verifier.js";
import { type PageContext, verifiedContract } from "../context.js";
import { valueList } from "../moves.js";

/** Longest form: sources of large projects are some MiB. */
export const MAX_FORM_BYTES = 8 * 1024 * 1024;

/** What a verification counts, where a page counts one. */
export const VERIFICATION_COST = 60;

/** How long the sender's browser waits before it is shown that the work goes on. */
const WAIT_MS = 10_000;

/** Characters of all sources on a page; the rest is in the download. */
const MAX_SHOWN = 600_000;

/** Characters of an ABI on a page. */
const MAX_ABI = 200_000;

/** "/contract/<a>", "/verification/<id>", "/source/<a>". */
export function contractRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/contract",
      hasParameter: true,
      query: ["input", "file", "name", "compiler", "arguments"],
      form: { maxBytes: MAX_FORM_BYTES, cost: VERIFICATION_COST, hasOwnQueue: true },
      handle: (request) => contractPage(context, request),
    },
    {
      path: "/verification",
      hasParameter: true,
      handle: (request) => verificationPage(context, request),
    },
    { path: "/source", hasParameter: true, handle: (request) => sourceFile(context, request) },
  ];
}

/** The account that a path names. @throws BAD_REQUEST */
export function accountOf(parameter: string): Address {
  const account = readAddress(parameter);
  if (account === undefined) throw badRequest("not an address");
  return account;
}

/** The verifier. @throws UNAVAILABLE where nothing is verified here */
export function verifierOf({ contracts: { verifier } }: PageContext): Verifier {
  if (verifier !== undefined) return verifier;
  throw new PageError("UNAVAILABLE", "contracts are not verified here");
}

/** The contract's part of its account's page. */
export async function contractSection(
  context: PageContext,
  account: Address,
  { t, signal }: PageRequest,
): Promise<Content> {
  const contract = await verifiedContract(context, account, signal);
  if (contract !== undefined) {
    return section(
      t("contract"),
      el("p", {}, matchBadge(contract, t), " ", el("bdi", {}, foreignName(contract.name))),
      contractTabs(account, t),
    );
  }
  return section(t("contract"), await unverified(context, account, t));
}

/** Ways between a verified contract's pages. */
export function contractTabs(account: Address, t: Texts): Content {
  const own = toChecksumAddress(account);
  const links = [
    [`/address/${own}`, t("account")],
    [`/contract/${own}`, t("sourceAndAbi")],
    [`/read/${own}`, t("readContract")],
    [`/write/${own}`, t("writeContract")],
  ] as const;
  return el(
    "nav",
    { "aria-label": t("contract") },
    el(
      "ul",
      {},
      links.map(([href, name]) => el("li", {}, el("a", { href }, name))),
    ),
  );
}

async function contractPage(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const { parameter, query, isSent, remoteAddress, t, signal } = request;
  const account = accountOf(parameter);
  if (isSent) {
    const verifier = verifierOf(context);
    const sent = {
      address: account,
      input: query.get("file") ?? query.get("input") ?? "",
      contractName: query.get("name") ?? "",
      compilerVersion: query.get("compiler") ?? "",
      constructorArguments: query.get("arguments") ?? "",
    };
    const { id } = verifier.submit(sent, remoteAddress);
    await verifier.settled(id, WAIT_MS);
    return { location: `/verification/${id}` };
  }
  const contract = await verifiedContract(context, account, signal);
  if (contract !== undefined) return sourcePage(contract, t);
  const contractCode = await context.chain.evm.getCode(account, "latest", { signal });
  if (contractCode === "0x") throw notFound("no contract at this address");
  return {
    title: t("contract"),
    content: [
      facts([[t("account"), addressLink(account, t, false)]]),
      await unverified(context, account, t),
    ],
  };
}

async function unverified(
  { contracts: { verifier } }: PageContext,
  account: Address,
  t: Texts,
): Promise<Content> {
  if (verifier === undefined) return note("info", t("notVerified"), " ", t("verificationOff"));
  const versions = await verifier.versions();
  return [
    note("info", t("notVerified")),
    versions.length === 0 ? note("warning", t("noCompilers")) : verifyForm(account, versions, t),
  ];
}

function verifyForm(account: Address, versions: readonly string[], t: Texts): Content {
  const field = (
    id: string,
    label: string,
    attributes: Record<string, string | number | boolean>,
  ) =>
    el(
      "p",
      {},
      el("label", { for: id }, label),
      el("input", { id, name: id, autocomplete: "off", spellcheck: "false", ...attributes }),
    );
  return el(
    "details",
    {},
    el("summary", {}, t("verifySources")),
    el("p", {}, t("verifySourcesText")),
    el(
      "form",
      {
        class: "stacked",
        method: "post",
        action: `/contract/${toChecksumAddress(account)}`,
        enctype: "multipart/form-data",
      },
      field("file", t("standardJsonFile"), { type: "file", accept: ".json,application/json" }),
      el(
        "p",
        {},
        el("label", { for: "input" }, t("standardJsonText")),
        el("textarea", { id: "input", name: "input", rows: 6, spellcheck: "false" }),
      ),
      field("name", t("contractName"), { required: true, maxlength: 800 }),
      el(
        "p",
        {},
        el("label", { for: "compiler" }, t("compilerVersion")),
        el(
          "select",
          { id: "compiler", name: "compiler" },
          versions.map((version) => el("option", { value: version }, version)),
        ),
      ),
      field("arguments", t("constructorArgumentsOptional"), {}),
      el("button", { type: "submit" }, t("verifySources")),
    ),
  );
}

function matchBadge({ match }: VerifiedContract, t: Texts): Content {
  return match.kind === "exact"
    ? badge("good", t("matchExact"))
    : badge("neutral", t("matchPartial"));
}

function sourcePage(contract: VerifiedContract, t: Texts): Page {
  const { address, match, input } = contract;
  const parts = new Set(contract.parts ?? Object.keys(input.sources));
  const sources = Object.entries(input.sources);
  const others = sources.filter(([path]) => !parts.has(path));
  const abi = abiText(contract);
  return {
    title: t("contract"),
    content: [
      contractTabs(address, t),
      facts([...contractFacts(contract, t), ...creationFacts(contract, t)]),
      el("p", {}, match.kind === "exact" ? t("matchExactText") : t("matchPartialText")),
      immutablesSection(contract, t),
      section(
        t("sources"),
        el("p", {}, el("a", { href: `/source/${address}` }, t("downloadSources"))),
        sourcesContent(
          sources.filter(([path]) => parts.has(path)),
          t,
        ),
      ),
      others.length === 0
        ? undefined
        : section(
            t("sentAlong"),
            note("warning", t("sentAlongText")),
            sourcesContent(others, t, false),
          ),
      section(
        "ABI",
        el(
          "details",
          {},
          el("summary", {}, "ABI"),
          abi === undefined ? el("p", {}, t("inTheDownload")) : textBlock(abi, "ABI"),
        ),
      ),
      section(
        t("settings"),
        el(
          "details",
          {},
          el("summary", {}, t("settings")),
          textBlock(JSON.stringify(input.settings, null, 1).slice(0, MAX_ABI), t("settings")),
        ),
      ),
    ],
  };
}

/** For people; undefined where it is too long for them, which no line of it has to be made for. */
function abiText({ abi }: VerifiedContract): string | undefined {
  if (JSON.stringify(abi).length > MAX_ABI) return undefined;
  const text = JSON.stringify(abi, null, 1);
  return text.length > MAX_ABI ? undefined : text;
}

function contractFacts(contract: VerifiedContract, t: Texts): readonly Fact[] {
  const { address, match } = contract;
  return [
    [t("account"), addressLink(address, t, false)],
    [
      t("contractName"),
      el("bdi", {}, `${foreignText(contract.source)}:${foreignName(contract.name)}`),
    ],
    [t("status"), matchBadge(contract, t)],
    [t("compilerVersion"), contract.compiler],
    [t("verifiedAt"), time(contract.verifiedAtSeconds)],
    [t("codeHash"), code(contract.codeHash)],
    [t("metadataOnChain"), code(match.chainHash ?? "—")],
    [t("metadataCompiled"), code(match.compiledHash ?? "—")],
    ...match.libraries.map(
      ({ name, value }): Fact => [t("library", { name: foreignText(name) }), code(value)],
    ),
  ];
}

function immutablesSection({ match }: VerifiedContract, t: Texts): Content {
  if (match.immutables.length === 0) return undefined;
  return section(
    t("immutables"),
    el("p", {}, t("immutablesText")),
    table({
      caption: t("immutables"),
      columns: [t("place"), t("value")],
      empty: "—",
      rows: match.immutables.map(({ name, value }) => [name, code(value)]),
    }),
  );
}

function creationFacts({ creation, abi }: VerifiedContract, t: Texts): readonly Fact[] {
  if (creation === undefined) return [];
  const { transactionHash, constructorArguments } = creation;
  const inputs = readAbi(abi).find(({ kind }) => kind === "constructor")?.inputs ?? [];
  const values = decodeParameters(inputs, hexToBytes(constructorArguments));
  return [
    [t("createdBy"), transactionLink(transactionHash, false)],
    [
      t("constructorArguments"),
      constructorArguments === "0x"
        ? undefined
        : values === undefined
          ? code(constructorArguments.slice(0, 2_000))
          : valueList(values, t),
    ],
  ];
}

/** Every source under its path, as many as fit on a page. */
function sourcesContent(
  sources: readonly (readonly [path: string, source: { readonly content: string }])[],
  t: Texts,
  isOpen = true,
): Content {
  let left = MAX_SHOWN;
  return sources.map(([path, { content }], index) => {
    left -= content.length;
    const name = foreignText(path);
    return el(
      "details",
      { open: isOpen && index === 0 },
      el("summary", {}, el("bdi", {}, name)),
      left < 0 ? el("p", {}, t("inTheDownload")) : textBlock(content, name),
    );
  });
}

async function sourceFile(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const account = accountOf(request.parameter);
  const contract = await verifiedContract(context, account, request.signal);
  if (contract === undefined) throw notFound("no verified contract at this address");
  const { source, name, compiler, abi, match, codeHash, input, parts } = contract;
  return {
    json: {
      address: account,
      codeHash,
      source,
      name,
      compiler,
      match,
      abi,
      input: publishedInput(input),
      parts,
    },
    fileName: `${account}.json`,
    isFinal: false,
  };
}

/** Texts of why not. */
const WORDS: Readonly<Record<RefusalCode, Parameters<Texts>[0]>> = {
  BAD_INPUT: "refusedInput",
  NO_CODE: "refusedNoCode",
  NO_COMPILER: "refusedNoCompiler",
  OTHER_COMPILER: "refusedOtherCompiler",
  COMPILER_FAILED: "refusedCompilerFailed",
  COMPILE_ERRORS: "refusedCompileErrors",
  NO_SUCH_CONTRACT: "refusedNoSuchContract",
  AMBIGUOUS: "refusedAmbiguous",
  ABI_TOO_LARGE: "refusedLargeAbi",
  MISMATCH: "refusedMismatch",
  WRONG_ARGUMENTS: "refusedArguments",
  ALREADY_VERIFIED: "refusedAlready",
  TOO_LONG: "refusedTooLong",
  TOO_MUCH_MEMORY: "refusedMemory",
  TOO_MUCH_SENT_ALONG: "refusedSentAlong",
  STORE_FULL: "refusedFull",
  NODE_AWAY: "unavailableText",
  STOPPED: "refusedStopped",
};

async function verificationPage(
  context: PageContext,
  { parameter, t }: PageRequest,
): Promise<Page> {
  const job = context.contracts.verifier?.job(parameter);
  if (job === undefined) throw notFound("no verification of this id is remembered");
  const { address, outcome } = job;
  const title = t("verificationTitle");
  const about = facts([[t("account"), addressLink(address, t, false)]]);
  if (outcome.kind === "waiting") {
    return {
      title,
      scripts: ["live"],
      content: el(
        "div",
        { id: "live", "data-live": "" },
        about,
        note("info", t("verificationWaits")),
        el("p", {}, el("a", { href: `/verification/${parameter}` }, t("lookAgain"))),
      ),
    };
  }
  const own = `/contract/${toChecksumAddress(address)}`;
  if (outcome.kind === "verified") {
    const kind = outcome.match === "exact" ? "matchExactText" : "matchPartialText";
    return {
      title,
      content: [
        about,
        note("info", t("verified"), " ", t(kind)),
        el("p", {}, el("a", { href: own }, t("sourceAndAbi"))),
      ],
    };
  }
  return {
    title,
    content: [
      about,
      note("warning", t(WORDS[outcome.code])),
      outcome.detail === "" ? undefined : textBlock(outcome.detail, t("message")),
      el("p", {}, el("a", { href: own }, t("tryAgain"))),
    ],
  };
}
