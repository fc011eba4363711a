/** The texts in English; the other languages follow their keys. */

import { MODULE_ENGLISH } from "./modules/english.js";

/** Every text by its name. */
export const ENGLISH = {
  ...MODULE_ENGLISH,
  account: "Account",
  allTokens: "All tokens that were met",
  amount: "Amount",
  answerDoesNotFit: "The answer does not fit the ABI:",
  arriving:
    "Included in a final block; the next block brings the {needed} confirmations that " +
    "exchanges wait for.",
  asOfBlock: "As of block",
  attributes: "Attributes",
  backHome: "To the first page",
  badRequestText:
    "Check what was typed: heights are numbers, hashes have 64 hex digits, accounts begin " +
    "with 0x or addr1.",
  badRequestTitle: "This address cannot be read",
  balance: "Balance",
  balanceHistory: "Balance over time",
  bech32Address: "Address (bech32)",
  block: "Block",
  blockAge: "newest block {seconds} s old",
  blockAhead: "newest block {seconds} s ahead of this server's clock",
  blockItself: "the block itself",
  blockMissing: "{block} is not in the chain up to block {height}.",
  blockMoves: "Moves of the block itself",
  blockMovesText:
    "At the end of each block half of its fees is burned, the rest goes to the treasury, and " +
    "new coins are minted for validators and the development fund.",
  blocks: "Blocks",
  burned: "Burned",
  burnedInBlock: "Burned in this block",
  busyText: "Please load the page again in a few seconds.",
  busyTitle: "Too many pages at once",
  bySignature: "(read by its signature; contracts may mean something else)",
  byVerifiedAbi: "(read by the contract's verified ABI)",
  bytes: "{count} bytes",
  call: "Call",
  callFailed: "The call failed:",
  calldata: "Call",
  calledWithLittleGas: "It was given {gas} gas at most; the button calls it with more.",
  candles: "Candles",
  priceChart: "Prices over time",
  carriedOut:
    "Carried out: the block is final, and {needed} of {needed} confirmations are there: what it moved " +
    "stands below.",
  castCommand: "Command for a shell",
  chainAccount: "Account of the chain",
  chainHealth: "Chain",
  chainIds: "Chain ids",
  change: "Change",
  changeSinceFirst: "Change since the first block shown",
  claimed: "claimed",
  claimedDecimals: "Decimals, as the contract says",
  claimedName: "Name, as the contract says",
  claimedSupply: "Supply, as the contract says",
  claimedSymbol: "Symbol, as the contract says",
  claimsText:
    "Nobody vouches for this token. Name, symbol and supply are what the contract says of " +
    "itself, and anyone can call a token anything.",
  close: "Close",
  clocksDiffer: "clocks differ",
  codeHash: "Code hash",
  commit: "Commit: who signed",
  commitFinal: "canonical, as the next block has it",
  commitOpen: "of the newest block; votes may still be added",
  commitState: "State of the commit",
  compilerVersion: "Compiler",
  confirmations: "Confirmations",
  consensusHash: "Consensus hash",
  constructorArguments: "Constructor arguments",
  constructorArgumentsOptional: "Constructor arguments as hex (may stay empty)",
  contract: "Contract",
  contractName: "Contract",
  cosmosEvents: "Events (Cosmos)",
  cosmosHash: "Cosmos hash",
  cosmosTransactions: "Cosmos transactions",
  counterparty: "From or to",
  createdBy: "Created by",
  createdContract: "Created contract",
  dayVolume: "Volume of the last day",
  decimals: "Decimals",
  depositIntro:
    "Paste the hash of the transaction, in any form. You see whether it is in a block, " +
    "whether it succeeded, and everything that it moved.",
  developmentFund: "development fund",
  didNotArrive: "The transaction is in a final block and failed: nothing but the fee moved.",
  downloadProof: "Download the proof (JSON)",
  downloadSources: "Download sources, settings and ABI (JSON)",
  droppedText: "It was in the pool and was dropped.",
  effect: "Effect",
  eventType: "Event",
  everythingMoved: "Native coins, account by account",
  everythingMovedText: "Everything counted together: calls inside of contracts and the fee, too.",
  evmAddress: "Address (EVM)",
  evmHash: "EVM hash",
  evmTransactions: "EVM transactions",
  failed: "failed",
  failedBecause: "It failed:",
  failedText: "The fault is written down in the explorer's log.",
  failedTitle: "This page could not be made",
  failedUnknown: "It failed; the node does not know why.",
  fee: "Fee",
  feeBurned: "Of the fee burned",
  feeCollector: "fee collector",
  final: "final",
  finalNewest: "final (newest block)",
  finalUntold:
    "The block is final, and {needed} of {needed} confirmations are there; what it moved is not told " +
    "here.",
  from: "From",
  fromIndexer: "From the indexer.",
  function: "function",
  gasLimit: "Gas limit",
  gasPrice: "Gas price",
  gasUsed: "Gas used",
  hashOfBlock: "This is the hash of block {height}, not of a transaction.",
  height: "Height",
  high: "High",
  holders: "Holders",
  home: "Overview",
  immutables: "Immutable values",
  immutablesText:
    "Written into the code by the constructor; everything around them is compared. The " +
    "places are the numbers that the compiler gave to the variables.",
  inTheDownload: "Too long for this page: it is in the download.",
  includedIn: "Included in block",
  indexedAhead:
    "From the indexer, which has read up to block {height}: the node does not have that block. What is in " +
    "blocks above the newest one may be of blocks that the chain has lost.",
  indexedTo: "From the indexer, which has read up to block {height}.",
  indexerForeign:
    "The indexer has other blocks than the node: nothing of it is shown. What the node itself " +
    "knows is shown.",
  indexerUnavailable:
    "The indexer does not answer: this part is missing. What the node itself knows is shown.",
  internal: "inside, call {path}",
  interval: "Span of a candle",
  isListed: "On this explorer's list as {symbol}.",
  journalKept:
    "The node has deleted what is older: only changes in blocks from {height} on are shown.",
  journalTooLarge:
    "The block is too large to show its moves here; the node's causeway_getBlockJournal has " +
    "them all.",
  kind: "Kind",
  latestBlocks: "Newest blocks",
  latestEvmTransactions: "Newest EVM transactions",
  library: "Library {name}",
  linkToSend: "Link to send",
  listedAs: "Listed as",
  listedTokens: "Listed tokens",
  listedTokensOnly: "Only listed tokens are asked for; the indexer knows the others.",
  listedTokensText: "Whoever runs this explorer vouches for these names.",
  logs: "Logs",
  look: "Look",
  lookAgain: "Look again",
  low: "Low",
  mainNavigation: "Main",
  makeCall: "Make the call",
  matchExact: "exact match",
  matchExactText:
    "The code and the hash of its metadata are what the compiler makes of these sources: " +
    "they are the sources, to the last comment.",
  matchPartial: "partial match",
  matchPartialText:
    "The code is what the compiler makes of these sources. The hash of the metadata differs " +
    "or is missing: comments, names of variables or paths may be others than those of who " +
    "deployed it.",
  memo: "Memo",
  message: "Message",
  messages: "Messages",
  metadataCompiled: "Metadata hash, compiled",
  metadataOnChain: "Metadata hash, on the chain",
  minted: "Minted",
  mintedAndBurned: "Minted and burned",
  mintedInBlock: "Minted in this block",
  moreRows: "{count} more are not shown.",
  moved: "moved",
  movedNothing:
    "The transaction is in a final block. It was carried out and moved nothing but the fee: nobody " +
    "received anything by it.",
  moving: "moving",
  name: "Name",
  nativeJournal: "Changes of the balance",
  nativeJournalText:
    "Every change of the native balance, as the node wrote it down while it happened; calls " +
    "inside of contracts, fees and rewards, too.",
  nativeMoves: "Native coins that moved",
  neighbourBlocks: "Neighbouring blocks",
  newContract: "new contract",
  newer: "Newer",
  newestBlock: "Newest block",
  no: "no",
  noBlocks: "There is no block.",
  noCandles: "There are no candles.",
  noChanges: "The balance never changed.",
  noChangesKept: "The balance did not change in them.",
  noCommit: "The node does not have who signed.",
  noCompilers:
    "There is no compiler here: who runs this explorer can put some into its folder of " +
    "compilers.",
  noContract: "no contract",
  noCosmosView: "The node does not show the Cosmos side of it.",
  noEvents: "There are no events.",
  noFunctions: "There are no such functions.",
  noHistory: "Too few values are known to draw them.",
  noHolders: "Nobody holds any.",
  noListedTokens: "The list is empty.",
  noLogs: "There are no logs.",
  noMoves: "Nothing moved.",
  noPairs: "There are no pairs.",
  noTokenMoves: "No tokens were moved.",
  noTokens: "There are no tokens.",
  noTransactions: "There are no transactions.",
  noTransfers: "There are no transfers.",
  nobodyFrom: "newly made",
  nobodyTo: "ceased to be",
  nonce: "Nonce",
  noneInNewest: "The newest blocks have none.",
  notAHash: "This is no transaction hash: it has 64 hex digits, with or without 0x.",
  notAPair: "This contract does not answer as a pair does.",
  notFoundText: "There is nothing under this address.",
  notFoundTitle: "Not found",
  notInBlocks: "not in blocks up to {height}; pending: {pending}",
  notMoved: "not moved",
  notVerified: "The sources of this contract are not known here.",
  nothingFound: "Nothing was found under this name.",
  nothingReturned: "It succeeds and gives nothing back.",
  older: "Older",
  open: "Open",
  operatorAddress: "Address as an operator",
  ownNodeAdvice: "For looking. Deposits and withdrawals are decided by your own node.",
  pages: "Pages",
  pair: "Pair",
  pairs: "Pairs",
  parentHash: "Parent",
  perhapsSame: "perhaps the same as the equal transfer here",
  pin: "Trust this header",
  pinNewest: "Take the newest from this explorer",
  pinNewestText:
    "That trusts this explorer once; better take height and hash from a node of your own.",
  pinWrong: "That header does not have this hash. Nothing was changed.",
  pinned: "Trusted header: height {height}, {hash}",
  place: "Place",
  position: "position",
  power: "Power",
  price0: "Price: token 1 for one token 0",
  price1: "Price: token 0 for one token 1",
  pricesInTokens: "Prices are what was paid of token 1 for one token 0, in whole tokens.",
  pricesInUnits:
    "Prices are what was paid of token 1 for one token 0, in the smallest units of both: " +
    "their decimals are not known.",
  proofs: "Proofs",
  proposer: "Proposer",
  prunedText: "The node has deleted data that is so old.",
  publicKey: "Public key (Ed25519)",
  rateLimitedText: "Please wait a moment; the header Retry-After says how long.",
  rateLimitedTitle: "Too many pages for one reader",
  rawData: "Bytes",
  rawLog: "Topics and data",
  readContract: "Read",
  readOnlyText: "Pages are only read here: GET and HEAD.",
  readText:
    "The functions are called here, at the newest block, with nobody as their sender. What " +
    "they answer is the contract's word.",
  reason: "Reason",
  receiptsRoot: "Receipts root",
  refusedAlready: "The contract is verified already, as well as by this.",
  refusedAmbiguous: "Several sources have a contract of this name: give the path, too.",
  refusedArguments: "The constructor was given other arguments:",
  refusedCompileErrors: "The compiler refuses the sources:",
  refusedCompilerFailed: "The compiler broke down.",
  refusedFull: "There is no room for more verified contracts.",
  refusedInput: "The form cannot be used:",
  refusedLargeAbi: "The contract's ABI is larger than pages here can show:",
  refusedMemory: "The compilation needs more memory than it may have.",
  refusedMismatch: "The code on the chain is not what the compiler makes of these sources:",
  refusedNoCode: "There is no contract at this address.",
  refusedNoCompiler: "There is no such compiler here:",
  refusedNoSuchContract: "No source has a contract of this name.",
  refusedOtherCompiler: "The compiler of this version that is here is another one:",
  refusedSentAlong: "Too much was sent along that the contract is not made of:",
  refusedStopped: "It was interrupted. Send it again.",
  refusedTooLong: "The compilation takes longer than it may.",
  replacedBy: "It was replaced by",
  reserves: "Reserves",
  round: "Round",
  sameAsTable: "The same as a table",
  search: "Search",
  searchHelp:
    "Heights, hashes of blocks and transactions (EVM or Cosmos), accounts (0x or addr1), " +
    "validators, proposals (proposal 7) and names of tokens are found.",
  searchLabel: "Block, transaction, account or token",
  sendWithWallet: "Send with the wallet of this browser",
  settings: "Settings of the compiler",
  sentAlong: "Sent along",
  sentAlongText:
    "The contract is not made of these files: they were compiled beside it, and nothing proves " +
    "what is in them.",
  share: "Share",
  signedBy: "Signed by",
  skipToContent: "To the content",
  sourceAndAbi: "Sources and ABI",
  sources: "Sources",
  standardJsonFile: "Standard JSON input as a file",
  standardJsonText: "Or as text",
  standingStill: "standing still",
  stateRoot: "State root",
  status: "Status",
  success: "success",
  supply: "Supply",
  supplyText:
    "The supply grows by what is minted and shrinks by what is burned; nothing else changes " +
    "it but coins that contracts destroy.",
  swaps: "Swaps",
  symbol: "Symbol",
  time: "Time",
  to: "To",
  token: "Token",
  tokenMoves: "Token transfers",
  tokens: "Tokens",
  tokensAreClaims:
    "These are the contracts' own words; only the balance of a token you trust counts.",
  tooLargeText: "What was sent is too large.",
  topLevel: "the call itself",
  totalPower: "Total power",
  totalSupply: "Total supply",
  transaction: "Transaction",
  transactionHash: "Hash of the transaction",
  transactions: "Transactions",
  transactionsRoot: "Transactions root",
  transfers: "Transfers",
  treasury: "treasury",
  trustedHeader: "Trusted header",
  trustedHeaderText:
    "Height and hash of a header that you trust. It proves blocks above it while it is at most " +
    "a week old, and the 10,000 blocks below it at any age. Your own node says them:",
  tryAgain: "Try again",
  unaskedPairText:
    "Without the indexer it is not known whether a factory has this contract as its pair. Anyone " +
    "can write a contract that says that it is one.",
  unavailableText:
    "The node does not answer just now. Nothing is lost; please load the page again.",
  unavailableTitle: "A part behind this page does not answer",
  unconfirmedPair: "not confirmed",
  unconfirmedPairText:
    "No factory has this contract as its pair, as far as the indexer knows. Anyone can " +
    "write a contract that says that it is one.",
  units: "units",
  unknownAdvice: "If it was just sent, it may be on its way. Check the network and the hash.",
  unknownTransaction: "Unknown transaction",
  uptime: "Signed lately",
  validator: "Validator",
  validators: "Validators",
  validatorsPool: "validators' pool",
  validatorsText: "Who signed is counted over the last {count} blocks.",
  value: "Value",
  valueToSend: "TOKEN to send with it",
  valueWrong: "This is not an amount of TOKEN.",
  verificationOff: "This explorer verifies none.",
  verificationTitle: "Verification",
  verificationWaits: "The sources are being compiled.",
  verified: "Verified.",
  verifiedAt: "Verified on",
  verify: "Verify",
  verifyButton: "Verify in this browser",
  verifyHeld: "Proven, from the trusted header on:",
  verifyIntro:
    "Your browser can check what this explorer shows, without believing it. A small script " +
    "fetches what the node answered and computes everything itself.",
  verifyNeedsScript:
    "This needs JavaScript. Without it, download the proof and check it with a program of " +
    "your own.",
  verifyPinLink: "Choose the header that you trust.",
  verifyRefused: "NOT proven. Do not rely on this page:",
  verifyRunning: "Checking ...",
  verifyScripts: "What runs",
  verifyScriptsText:
    "The script is served by this explorer, unchanged from the project's folder " +
    "explorer/assets: who does not trust this server takes it from there. Its outcome is as " +
    "trustworthy as the place that it came from.",
  verifySources: "Verify the sources",
  verifySourcesText:
    "The sources are compiled here and compared with the code on the chain. Everybody can " +
    "read them afterwards. Send the standard JSON input that the contract was compiled from " +
    "(in build-info of Hardhat and Foundry).",
  verifyStep1:
    "More than two thirds of the validators' power signed the header above the block " +
    "(Ed25519), and more than a third of the validators of the header that you trust.",
  verifyStep2: "That header's app_hash is the hash of the EVM header.",
  verifyStep3:
    "The account's proof leads from the state root in the EVM header to balance and nonce.",
  verifyStep4:
    "The receipts of the block give the receipts root in the EVM header, and among them is " +
    "the transaction's.",
  verifyText: "The script checks signatures, headers and proof itself.",
  verifyUnable:
    "Nothing can be checked here, and nothing is refuted. It needs a page over https, or of your own " +
    "machine, and a browser that knows Ed25519 (Chrome 137, Firefox 129, Safari 17 or newer).",
  verifyUnanswered:
    "Not checked, because an answer could not be had. Nothing is proven and nothing refuted: try " +
    "again later.",
  verifyUnpinned: "No trusted header is chosen yet.",
  vote: "Vote",
  voteAbsent: "absent",
  voteCommit: "for the block",
  voteNil: "for nothing",
  walletOtherChain: "The wallet is on another chain. This one is",
  walletRefused: "Not sent:",
  walletSent: "Sent:",
  whereIsMyDeposit: "Where is my deposit?",
  writeContract: "Write",
  writeText:
    "Nothing is signed here: the page makes the bytes, you sign them. Read the sources first.",
  yes: "yes",
} as const;

/** Name of a text. */
export type TextKey = keyof typeof ENGLISH;

/** One language's texts; `{name}` is filled in. */
export type Catalogue = Readonly<Record<TextKey, string>>;
