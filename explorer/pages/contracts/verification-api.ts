/**
 * Verification as Etherscan's clients ask for it (hardhat-verify, forge): `/api` with `module=contract`
 * and `verifysourcecode` (standard JSON only), `checkverifystatus`, `getsourcecode`, `getabi`.
 * Source: Etherscan's API documentation, "Contracts".
 */
import { readAddress } from "../../decode/identifiers.js";
import { badRequest, PageError, STATUS_OF } from "../../../web/errors.js";
import type { Download, PageRequest, PageRoute, RouteFault } from "../../server/page.js";
import { releaseOf } from "../../verification/compilers.js";
import { publishedInput } from "../../verification/standard-input.js";
import { sentAlongBytes, type VerifiedContract } from "../../verification/verified-store.js";
import { MAX_FORM_BYTES, verifierOf, VERIFICATION_COST } from "./contract.js";
import { type PageContext, verifiedContract } from "../context.js";

/** Etherscan's answer to anything: status "1" for a result, "0" for a refusal. */
interface Answer {
  readonly status: "0" | "1";
  /** "OK" or "NOTOK"; why not, where clients compare the result with a text to the last letter. */
  readonly message: string;
  readonly result: unknown;
}

const CODE_FORMAT = "solidity-standard-json-input";

/** The action that is work. */
const VERIFY = "verifysourcecode";

/** By the first of these beginnings clients know that they may ask again. */
function faultAnswer(fault: RouteFault): Answer {
  const isTooOften = fault.status === STATUS_OF.RATE_LIMITED;
  return refusal(`${isTooOften ? "Max rate limit reached." : "Error!"} ${fault.text}`);
}

/** "/api". */
export function verificationApiRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/api",
      hasParameter: false,
      query: [
        "module",
        "action",
        "address",
        "guid",
        "contractaddress",
        "sourceCode",
        "codeformat",
        "contractname",
        "compilerversion",
        // As Etherscan spells it, and as people do.
        "constructorArguements",
        "constructorArguments",
      ],
      form: {
        maxBytes: MAX_FORM_BYTES,
        cost: VERIFICATION_COST,
        // Forge asks by forms how its verification goes, too, every few seconds.
        costOf: (query) => (query.get("action") === VERIFY ? VERIFICATION_COST : 1),
        hasOwnQueue: true,
      },
      refusal: faultAnswer,
      handle: async (request) => download(await answerOrWhy(context, request)),
    },
  ];
}

function download(json: Answer): Download {
  return { json, fileName: "answer.json", isFinal: false };
}

function ok(result: unknown): Answer {
  return { status: "1", message: "OK", result };
}

function refusal(result: string): Answer {
  return { status: "0", message: "NOTOK", result };
}

/** Clients read JSON, whatever is wrong: a page that says so they can only report as no JSON. */
async function answerOrWhy(context: PageContext, request: PageRequest): Promise<Answer> {
  try {
    return await answer(context, request);
  } catch (error) {
    if (error instanceof PageError) return refusal(`Error! ${error.message}`);
    throw error;
  }
}

async function answer(context: PageContext, request: PageRequest): Promise<Answer> {
  const { query } = request;
  if (query.get("module") !== "contract") return refusal("Error! Missing Or invalid Module name");
  switch (query.get("action")) {
    case VERIFY:
      return submit(context, request);
    case "checkverifystatus":
      return status(context, query.get("guid") ?? "");
    case "getsourcecode":
      return sources(await asked(context, request));
    case "getabi": {
      const contract = await asked(context, request);
      if (contract === undefined) return refusal("Contract source code not verified");
      return ok(JSON.stringify(contract.abi));
    }
    default:
      return refusal("Error! Missing Or invalid Action name");
  }
}

async function asked(
  context: PageContext,
  { query, signal }: PageRequest,
): Promise<VerifiedContract | undefined> {
  const address = readAddress(query.get("address") ?? "");
  if (address === undefined) throw badRequest("Invalid address format");
  return verifiedContract(context, address, signal);
}

async function submit(
  context: PageContext,
  { query, isSent, remoteAddress, signal }: PageRequest,
): Promise<Answer> {
  if (!isSent) return refusal("Error! verifysourcecode is sent as a form (POST)");
  const address = readAddress(query.get("contractaddress") ?? "");
  if (address === undefined) return refusal("Invalid contractaddress");
  if (query.get("codeformat") !== CODE_FORMAT)
    return refusal(`Only codeformat ${CODE_FORMAT} is taken`);
  const verifier = verifierOf(context);
  const code = await context.chain.evm.getCode(address, "latest", { signal });
  if (code === "0x") return refusal(`Unable to locate ContractCode at ${address}`);
  const former = await verifiedContract(context, address, signal);
  // One with more in it than the contract is made of gives way to one with less.
  if (former?.match.kind === "exact" && sentAlongBytes(former) === 0)
    return refusal("Contract source code already verified");
  const sent = {
    address,
    input: query.get("sourceCode") ?? "",
    contractName: query.get("contractname") ?? "",
    compilerVersion: query.get("compilerversion") ?? "",
    constructorArguments:
      query.get("constructorArguements") ?? query.get("constructorArguments") ?? "",
  };
  const { id } = verifier.submit(sent, remoteAddress);
  return ok(id);
}

/**
 * To the letter: hardhat compares the whole result with it, and sends all sources then, where it had sent
 * those that the contract needs.
 */
const FAILED = "Fail - Unable to verify";

function whyOf({ code, detail }: { readonly code: string; readonly detail: string }): string {
  return `${code}: ${detail}`.trim();
}

function status({ contracts: { verifier } }: PageContext, id: string): Answer {
  const job = verifier?.job(id);
  if (job === undefined) return refusal(`${FAILED}: no such guid is remembered`);
  const { outcome } = job;
  switch (outcome.kind) {
    case "waiting":
      return refusal("Pending in queue");
    case "verified":
      return ok("Pass - Verified");
    default:
      if (outcome.code === "ALREADY_VERIFIED") return refusal("Already Verified");
      if (outcome.code === "MISMATCH") return { ...refusal(FAILED), message: whyOf(outcome) };
      return refusal(`${FAILED}. ${whyOf(outcome)}`);
  }
}

/** Etherscan's form: an unverified contract is a result with empty texts. */
function sources(contract: VerifiedContract | undefined): Answer {
  const settings = contract?.input.settings;
  const optimizer = settings?.["optimizer"] as { enabled?: unknown; runs?: unknown } | undefined;
  return ok([
    {
      SourceCode:
        contract === undefined ? "" : `{${JSON.stringify(publishedInput(contract.input))}}`,
      ABI:
        contract === undefined ? "Contract source code not verified" : JSON.stringify(contract.abi),
      ContractName: contract?.name ?? "",
      CompilerVersion: contract === undefined ? "" : `v${releaseOf(contract.compiler)}`,
      OptimizationUsed: optimizer?.enabled === true ? "1" : "0",
      Runs: textOf(optimizer?.runs, "200"),
      ConstructorArguments: contract?.creation?.constructorArguments.slice(2) ?? "",
      EVMVersion: textOf(settings?.["evmVersion"], "Default"),
      Library: "",
      LicenseType: "",
      Proxy: "0",
      Implementation: "",
      SwarmSource: "",
    },
  ]);
}

/** A setting of somebody's input, where it is a word or a number. */
function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : otherwise;
}
