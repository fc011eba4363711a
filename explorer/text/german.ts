/** The texts in German. */
import type { Catalogue } from "./english.js";
import { MODULE_GERMAN } from "./modules/german.js";

/** Every text by its name. */
export const GERMAN: Catalogue = {
  ...MODULE_GERMAN,
  account: "Konto",
  allTokens: "Alle Token, die vorkamen",
  amount: "Betrag",
  answerDoesNotFit: "Die Antwort passt nicht zum ABI:",
  arriving:
    "In einem endgültigen Block enthalten; der nächste Block bringt die {needed} " +
    "Bestätigungen, auf die Börsen warten.",
  asOfBlock: "Stand: Block",
  attributes: "Attribute",
  backHome: "Zur ersten Seite",
  badRequestText:
    "Prüfen Sie die Eingabe: Höhen sind Zahlen, Hashes haben 64 Hex-Ziffern, Konten beginnen " +
    "mit 0x oder addr1.",
  badRequestTitle: "Diese Adresse ist nicht lesbar",
  balance: "Guthaben",
  balanceHistory: "Guthaben im Verlauf",
  bech32Address: "Adresse (bech32)",
  block: "Block",
  blockAge: "neuester Block {seconds} s alt",
  blockAhead: "neuester Block {seconds} s vor der Uhr dieses Servers",
  blockItself: "der Block selbst",
  blockMissing: "{block} ist nicht in der Kette bis Block {height}.",
  blockMoves: "Bewegungen des Blocks selbst",
  blockMovesText:
    "Am Ende jedes Blocks wird die Hälfte der Gebühren verbrannt, der Rest geht an die " +
    "Schatzkammer, und neue Coins entstehen für Validatoren und den Entwicklungsfonds.",
  blocks: "Blöcke",
  burned: "Verbrannt",
  burnedInBlock: "In diesem Block verbrannt",
  busyText: "Bitte laden Sie die Seite in einigen Sekunden neu.",
  busyTitle: "Zu viele Seiten zugleich",
  bySignature: "(nach der Signatur gelesen; Verträge können anderes meinen)",
  byVerifiedAbi: "(nach dem geprüften ABI des Vertrags gelesen)",
  bytes: "{count} Bytes",
  call: "Aufrufen",
  callFailed: "Der Aufruf schlug fehl:",
  calldata: "Aufruf",
  calledWithLittleGas: "Er bekam höchstens {gas} Gas; der Knopf ruft mit mehr auf.",
  candles: "Kerzen",
  priceChart: "Preise im Verlauf",
  carriedOut:
    "Ausgeführt: Der Block ist endgültig, {needed} von {needed} Bestätigungen sind da: Was sie " +
    "bewegte, steht unten.",
  castCommand: "Befehl für eine Shell",
  chainAccount: "Konto der Kette",
  chainHealth: "Kette",
  chainIds: "Ketten-Kennungen",
  change: "Änderung",
  changeSinceFirst: "Änderung seit dem ersten gezeigten Block",
  claimed: "behauptet",
  claimedDecimals: "Dezimalstellen laut Vertrag",
  claimedName: "Name laut Vertrag",
  claimedSupply: "Menge laut Vertrag",
  claimedSymbol: "Symbol laut Vertrag",
  claimsText:
    "Niemand bürgt für diesen Token. Name, Symbol und Menge sind, was der Vertrag von sich " +
    "sagt; jeder kann einen Token beliebig nennen.",
  close: "Schluss",
  clocksDiffer: "Uhren gehen auseinander",
  codeHash: "Hash des Codes",
  commit: "Commit: Wer unterschrieb",
  commitFinal: "kanonisch, wie im nächsten Block",
  commitOpen: "des neuesten Blocks; Stimmen können noch hinzukommen",
  commitState: "Stand des Commits",
  compilerVersion: "Compiler",
  confirmations: "Bestätigungen",
  consensusHash: "Konsens-Hash",
  constructorArguments: "Argumente des Konstruktors",
  constructorArgumentsOptional: "Argumente des Konstruktors als Hex (darf leer bleiben)",
  contract: "Vertrag",
  contractName: "Vertrag",
  cosmosEvents: "Ereignisse (Cosmos)",
  cosmosHash: "Cosmos-Hash",
  cosmosTransactions: "Cosmos-Transaktionen",
  counterparty: "Von oder an",
  createdBy: "Erzeugt von",
  createdContract: "Erzeugter Vertrag",
  dayVolume: "Volumen des letzten Tages",
  decimals: "Dezimalstellen",
  depositIntro:
    "Fügen Sie den Hash der Transaktion ein, in beliebiger Form. Sie sehen, ob sie in einem " +
    "Block ist, ob sie gelang und was sie alles bewegte.",
  developmentFund: "Entwicklungsfonds",
  didNotArrive:
    "Die Transaktion ist in einem endgültigen Block und schlug fehl: Außer der Gebühr " +
    "bewegte sich nichts.",
  downloadProof: "Beweis herunterladen (JSON)",
  downloadSources: "Quellen, Einstellungen und ABI herunterladen (JSON)",
  droppedText: "Sie war im Pool und wurde verworfen.",
  effect: "Wirkung",
  eventType: "Ereignis",
  everythingMoved: "Native Coins, Konto für Konto",
  everythingMovedText:
    "Alles zusammengezählt: auch Aufrufe innerhalb von Verträgen und die Gebühr.",
  evmAddress: "Adresse (EVM)",
  evmHash: "EVM-Hash",
  evmTransactions: "EVM-Transaktionen",
  failed: "fehlgeschlagen",
  failedBecause: "Sie schlug fehl:",
  failedText: "Der Fehler steht im Protokoll des Explorers.",
  failedTitle: "Diese Seite konnte nicht erstellt werden",
  failedUnknown: "Sie schlug fehl; der Knoten weiß nicht, warum.",
  fee: "Gebühr",
  feeBurned: "Davon verbrannt",
  feeCollector: "Gebührensammler",
  final: "endgültig",
  finalNewest: "endgültig (neuester Block)",
  finalUntold:
    "Der Block ist endgültig, {needed} von {needed} Bestätigungen sind da; was sie bewegte, ist hier " +
    "nicht zu erfahren.",
  from: "Von",
  fromIndexer: "Vom Indexer.",
  function: "Funktion",
  gasLimit: "Gas-Grenze",
  gasPrice: "Gas-Preis",
  gasUsed: "Gas verbraucht",
  hashOfBlock: "Das ist der Hash von Block {height}, nicht einer Transaktion.",
  height: "Höhe",
  high: "Hoch",
  holders: "Inhaber",
  home: "Übersicht",
  immutables: "Unveränderliche Werte",
  immutablesText:
    "Vom Konstruktor in den Code geschrieben; alles um sie herum wird verglichen. Die " +
    "Stellen sind die Nummern, die der Compiler den Variablen gab.",
  inTheDownload: "Zu lang für diese Seite: es steht in der heruntergeladenen Datei.",
  includedIn: "Enthalten in Block",
  indexedAhead:
    "Vom Indexer, der bis Block {height} gelesen hat: Diesen Block hat der Knoten nicht. Was in Blöcken " +
    "über dem neuesten steht, kann aus Blöcken sein, die die Kette verloren hat.",
  indexedTo: "Vom Indexer, der bis Block {height} gelesen hat.",
  indexerForeign:
    "Der Indexer hat andere Blöcke als der Knoten: Nichts davon wird gezeigt. Gezeigt wird, was " +
    "der Knoten selbst weiß.",
  indexerUnavailable:
    "Der Indexer antwortet nicht: Dieser Teil fehlt. Gezeigt wird, was der Knoten selbst " +
    "weiß.",
  internal: "innen, Aufruf {path}",
  interval: "Zeitraum einer Kerze",
  isListed: "Auf der Liste dieses Explorers als {symbol}.",
  journalKept:
    "Der Knoten hat Älteres gelöscht: Gezeigt werden nur Änderungen in Blöcken ab {height}.",
  journalTooLarge:
    "Der Block ist zu groß, um seine Bewegungen hier zu zeigen; causeway_getBlockJournal des " +
    "Knotens hat sie alle.",
  kind: "Art",
  latestBlocks: "Neueste Blöcke",
  latestEvmTransactions: "Neueste EVM-Transaktionen",
  library: "Bibliothek {name}",
  linkToSend: "Link zum Weitergeben",
  listedAs: "Gelistet als",
  listedTokens: "Gelistete Token",
  listedTokensOnly: "Nur gelistete Token werden abgefragt; die anderen kennt der Indexer.",
  listedTokensText: "Für diese Namen bürgt, wer diesen Explorer betreibt.",
  logs: "Logs",
  look: "Nachsehen",
  lookAgain: "Noch einmal nachsehen",
  low: "Tief",
  mainNavigation: "Haupt",
  makeCall: "Aufruf erstellen",
  matchExact: "genaue Übereinstimmung",
  matchExactText:
    "Der Code und der Hash seiner Metadaten sind, was der Compiler aus diesen Quellen macht: " +
    "es sind die Quellen, bis zum letzten Kommentar.",
  matchPartial: "teilweise Übereinstimmung",
  matchPartialText:
    "Der Code ist, was der Compiler aus diesen Quellen macht. Der Hash der Metadaten ist ein " +
    "anderer oder fehlt: Kommentare, Namen von Variablen oder Pfade können andere sein als " +
    "bei dem, der ihn veröffentlicht hat.",
  memo: "Memo",
  message: "Meldung",
  messages: "Nachrichten",
  metadataCompiled: "Hash der Metadaten, kompiliert",
  metadataOnChain: "Hash der Metadaten, in der Kette",
  minted: "Neu entstanden",
  mintedAndBurned: "Entstanden und verbrannt",
  mintedInBlock: "In diesem Block entstanden",
  moreRows: "{count} weitere werden nicht gezeigt.",
  moved: "bewegt",
  movedNothing:
    "Die Transaktion ist in einem endgültigen Block. Sie wurde ausgeführt und bewegte nichts außer der " +
    "Gebühr: Niemand erhielt durch sie etwas.",
  moving: "läuft",
  name: "Name",
  nativeJournal: "Änderungen des Guthabens",
  nativeJournalText:
    "Jede Änderung des nativen Guthabens, wie der Knoten sie beim Geschehen aufschrieb; auch " +
    "Aufrufe in Verträgen, Gebühren und Belohnungen.",
  nativeMoves: "Bewegte native Coins",
  neighbourBlocks: "Nachbarblöcke",
  newContract: "neuer Vertrag",
  newer: "Neuer",
  newestBlock: "Neuester Block",
  no: "nein",
  noBlocks: "Es gibt keinen Block.",
  noCandles: "Es gibt keine Kerzen.",
  noChanges: "Das Guthaben änderte sich nie.",
  noChangesKept: "Das Guthaben änderte sich in ihnen nicht.",
  noCommit: "Der Knoten hat nicht, wer unterschrieb.",
  noCompilers:
    "Hier gibt es keinen Compiler: wer diesen Explorer betreibt, kann welche in seinen " +
    "Compiler-Ordner legen.",
  noContract: "kein Vertrag",
  noCosmosView: "Der Knoten zeigt die Cosmos-Seite davon nicht.",
  noEvents: "Es gibt keine Ereignisse.",
  noFunctions: "Solche Funktionen gibt es nicht.",
  noHistory: "Zu wenige Werte sind bekannt, um sie zu zeichnen.",
  noHolders: "Niemand hält davon.",
  noListedTokens: "Die Liste ist leer.",
  noLogs: "Es gibt keine Logs.",
  noMoves: "Nichts bewegte sich.",
  noPairs: "Es gibt keine Paare.",
  noTokenMoves: "Keine Token wurden bewegt.",
  noTokens: "Es gibt keine Token.",
  noTransactions: "Es gibt keine Transaktionen.",
  noTransfers: "Es gibt keine Überweisungen.",
  nobodyFrom: "neu entstanden",
  nobodyTo: "vernichtet",
  nonce: "Nonce",
  noneInNewest: "Die neuesten Blöcke haben keine.",
  notAHash: "Das ist kein Transaktions-Hash: Er hat 64 Hex-Ziffern, mit oder ohne 0x.",
  notAPair: "Dieser Vertrag antwortet nicht wie ein Paar.",
  notFoundText: "Unter dieser Adresse gibt es nichts.",
  notFoundTitle: "Nicht gefunden",
  notInBlocks: "nicht in Blöcken bis {height}; wartend: {pending}",
  notMoved: "nicht bewegt",
  notVerified: "Die Quellen dieses Vertrags sind hier nicht bekannt.",
  nothingFound: "Unter diesem Namen wurde nichts gefunden.",
  nothingReturned: "Er gelingt und gibt nichts zurück.",
  older: "Älter",
  open: "Eröffnung",
  operatorAddress: "Adresse als Operator",
  ownNodeAdvice: "Zum Ansehen. Über Ein- und Auszahlungen entscheidet Ihr eigener Knoten.",
  pages: "Seiten",
  pair: "Paar",
  pairs: "Paare",
  parentHash: "Vorgänger",
  perhapsSame: "vielleicht dieselbe wie die gleiche Überweisung hier",
  pin: "Diesem Kopf vertrauen",
  pinNewest: "Den neuesten von diesem Explorer nehmen",
  pinNewestText:
    "Damit vertrauen Sie diesem Explorer ein Mal; besser nehmen Sie Höhe und Hash von einem " +
    "eigenen Knoten.",
  pinWrong: "Dieser Kopf hat nicht diesen Hash. Nichts wurde geändert.",
  pinned: "Vertrauter Kopf: Höhe {height}, {hash}",
  place: "Stelle",
  position: "Position",
  power: "Gewicht",
  price0: "Preis: Token 1 für ein Token 0",
  price1: "Preis: Token 0 für ein Token 1",
  pricesInTokens: "Preise sind, was von Token 1 für ein Token 0 bezahlt wurde, in ganzen Token.",
  pricesInUnits:
    "Preise sind, was von Token 1 für ein Token 0 bezahlt wurde, in den kleinsten " +
    "Einheiten beider: Ihre Nachkommastellen sind nicht bekannt.",
  proofs: "Beweise",
  proposer: "Vorschlagender",
  prunedText: "Der Knoten hat so alte Daten gelöscht.",
  publicKey: "Öffentlicher Schlüssel (Ed25519)",
  rateLimitedText: "Bitte warten Sie kurz; der Kopf Retry-After sagt, wie lange.",
  rateLimitedTitle: "Zu viele Seiten für einen Leser",
  rawData: "Bytes",
  rawLog: "Topics und Daten",
  readContract: "Lesen",
  readOnlyText: "Hier werden Seiten nur gelesen: GET und HEAD.",
  readText:
    "Die Funktionen werden hier aufgerufen, beim neuesten Block und ohne Absender. Was sie " +
    "antworten, ist das Wort des Vertrags.",
  reason: "Grund",
  receiptsRoot: "Wurzel der Belege",
  refusedAlready: "Der Vertrag ist schon geprüft, ebenso gut wie hiermit.",
  refusedAmbiguous:
    "Mehrere Quellen haben einen Vertrag dieses Namens: bitte auch den Pfad angeben.",
  refusedArguments: "Der Konstruktor bekam andere Argumente:",
  refusedCompileErrors: "Der Compiler lehnt die Quellen ab:",
  refusedCompilerFailed: "Der Compiler ist abgebrochen.",
  refusedFull: "Für weitere geprüfte Verträge ist kein Platz.",
  refusedInput: "Das Formular ist so nicht brauchbar:",
  refusedLargeAbi: "Die ABI des Vertrags ist größer, als Seiten hier sie zeigen können:",
  refusedMemory: "Das Kompilieren braucht mehr Speicher, als es haben darf.",
  refusedMismatch: "Der Code in der Kette ist nicht, was der Compiler aus diesen Quellen macht:",
  refusedNoCode: "Unter dieser Adresse ist kein Vertrag.",
  refusedNoCompiler: "Diesen Compiler gibt es hier nicht:",
  refusedNoSuchContract: "Keine Quelle hat einen Vertrag dieses Namens.",
  refusedOtherCompiler: "Der Compiler dieser Version ist hier ein anderer:",
  refusedSentAlong: "Es wurde zu viel mitgeschickt, woraus der Vertrag nicht besteht:",
  refusedStopped: "Es wurde unterbrochen. Bitte noch einmal senden.",
  refusedTooLong: "Das Kompilieren dauert länger, als es darf.",
  replacedBy: "Sie wurde ersetzt durch",
  reserves: "Reserven",
  round: "Runde",
  sameAsTable: "Dasselbe als Tabelle",
  search: "Suche",
  searchHelp:
    "Gefunden werden Höhen, Hashes von Blöcken und Transaktionen (EVM oder Cosmos), Konten " +
    "(0x oder addr1), Validatoren, Vorschläge (Vorschlag 7) und Namen von Token.",
  searchLabel: "Block, Transaktion, Konto oder Token",
  sendWithWallet: "Mit der Wallet dieses Browsers senden",
  settings: "Einstellungen des Compilers",
  sentAlong: "Mitgeschickt",
  sentAlongText:
    "Der Vertrag besteht nicht aus diesen Dateien: Sie wurden neben ihm übersetzt, und nichts beweist, " +
    "was in ihnen steht.",
  share: "Anteil",
  signedBy: "Unterschrieben von",
  skipToContent: "Zum Inhalt",
  sourceAndAbi: "Quellen und ABI",
  sources: "Quellen",
  standardJsonFile: "Standard-JSON-Eingabe als Datei",
  standardJsonText: "Oder als Text",
  standingStill: "steht still",
  stateRoot: "Wurzel des Zustands",
  status: "Status",
  success: "gelungen",
  supply: "Menge",
  supplyText:
    "Die Menge wächst um Entstandenes und schrumpft um Verbranntes; sonst ändern sie nur " +
    "Coins, die Verträge vernichten.",
  swaps: "Tauschgeschäfte",
  symbol: "Symbol",
  time: "Zeit",
  to: "An",
  token: "Token",
  tokenMoves: "Token-Überweisungen",
  tokens: "Token",
  tokensAreClaims:
    "Das sind die Worte der Verträge; es zählt nur das Guthaben eines Tokens, dem Sie " +
    "vertrauen.",
  tooLargeText: "Das Gesendete ist zu groß.",
  topLevel: "der Aufruf selbst",
  totalPower: "Gesamtes Gewicht",
  totalSupply: "Gesamte Menge",
  transaction: "Transaktion",
  transactionHash: "Hash der Transaktion",
  transactions: "Transaktionen",
  transactionsRoot: "Wurzel der Transaktionen",
  transfers: "Überweisungen",
  treasury: "Schatzkammer",
  trustedHeader: "Vertrauter Kopf",
  trustedHeaderText:
    "Höhe und Hash eines Kopfes, dem Sie vertrauen. Er beweist Blöcke darüber, solange er " +
    "höchstens eine Woche alt ist, und die 10.000 Blöcke darunter in jedem Alter. Ihr eigener " +
    "Knoten nennt sie:",
  tryAgain: "Noch einmal versuchen",
  unaskedPairText:
    "Ohne den Indexer ist nicht bekannt, ob eine Fabrik diesen Vertrag als ihr Paar hat. Jeder " +
    "kann einen Vertrag schreiben, der das von sich sagt.",
  unavailableText:
    "Der Knoten antwortet gerade nicht. Nichts ist verloren; bitte laden Sie die Seite neu.",
  unavailableTitle: "Ein Teil hinter dieser Seite antwortet nicht",
  unconfirmedPair: "nicht bestätigt",
  unconfirmedPairText:
    "Keine Fabrik hat diesen Vertrag als ihr Paar, soweit der Indexer weiß. Jeder kann " +
    "einen Vertrag schreiben, der das von sich sagt.",
  units: "Einheiten",
  unknownAdvice:
    "Wurde sie gerade gesendet, ist sie vielleicht unterwegs. Prüfen Sie Netz und Hash.",
  unknownTransaction: "Unbekannte Transaktion",
  uptime: "Zuletzt unterschrieben",
  validator: "Validator",
  validators: "Validatoren",
  validatorsPool: "Topf der Validatoren",
  validatorsText: "Gezählt wird, wer die letzten {count} Blöcke unterschrieb.",
  value: "Wert",
  valueToSend: "TOKEN, die mitgeschickt werden",
  valueWrong: "Das ist kein Betrag in TOKEN.",
  verificationOff: "Dieser Explorer prüft keine.",
  verificationTitle: "Prüfung",
  verificationWaits: "Die Quellen werden kompiliert.",
  verified: "Geprüft.",
  verifiedAt: "Geprüft am",
  verify: "Prüfen",
  verifyButton: "In diesem Browser prüfen",
  verifyHeld: "Bewiesen, vom vertrauten Kopf an:",
  verifyIntro:
    "Ihr Browser kann prüfen, was dieser Explorer zeigt, ohne ihm zu glauben. Ein kleines " +
    "Skript holt, was der Knoten antwortete, und rechnet alles selbst nach.",
  verifyNeedsScript:
    "Das braucht JavaScript. Ohne es laden Sie den Beweis herunter und prüfen ihn mit einem " +
    "eigenen Programm.",
  verifyPinLink: "Wählen Sie den Kopf, dem Sie vertrauen.",
  verifyRefused: "NICHT bewiesen. Verlassen Sie sich nicht auf diese Seite:",
  verifyRunning: "Prüfung läuft ...",
  verifyScripts: "Was läuft",
  verifyScriptsText:
    "Das Skript liefert dieser Explorer, unverändert aus dem Ordner explorer/assets des " +
    "Projekts: Wer diesem Server nicht traut, nimmt es von dort. Sein Ergebnis ist so " +
    "vertrauenswürdig wie der Ort, von dem es kam.",
  verifySources: "Quellen prüfen",
  verifySourcesText:
    "Die Quellen werden hier kompiliert und mit dem Code in der Kette verglichen. Danach " +
    "kann sie jeder lesen. Gesendet wird die Standard-JSON-Eingabe, aus der der Vertrag " +
    "kompiliert wurde (bei Hardhat und Foundry in build-info).",
  verifyStep1:
    "Mehr als zwei Drittel des Gewichts der Validatoren unterschrieben den Kopf über dem " +
    "Block (Ed25519), und mehr als ein Drittel der Validatoren des Kopfes, dem Sie " +
    "vertrauen.",
  verifyStep2: "app_hash dieses Kopfes ist der Hash des EVM-Kopfes.",
  verifyStep3:
    "Der Beweis des Kontos führt von der Zustandswurzel im EVM-Kopf zu Guthaben und Nonce.",
  verifyStep4:
    "Die Belege des Blocks ergeben die Wurzel der Belege im EVM-Kopf, und der Beleg der " +
    "Transaktion ist darunter.",
  verifyText: "Das Skript prüft Unterschriften, Köpfe und Beweis selbst.",
  verifyUnable:
    "Hier lässt sich nichts prüfen, und nichts ist widerlegt. Nötig sind eine Seite über https oder vom " +
    "eigenen Rechner und ein Browser, der Ed25519 kennt (Chrome 137, Firefox 129, Safari 17 oder neuer).",
  verifyUnanswered:
    "Nicht geprüft, weil eine Antwort nicht zu haben war. Nichts ist bewiesen und nichts " +
    "widerlegt: Versuchen Sie es später noch einmal.",
  verifyUnpinned: "Noch ist kein vertrauter Kopf gewählt.",
  vote: "Stimme",
  voteAbsent: "abwesend",
  voteCommit: "für den Block",
  voteNil: "für nichts",
  walletOtherChain: "Die Wallet ist auf einer anderen Kette. Diese ist",
  walletRefused: "Nicht gesendet:",
  walletSent: "Gesendet:",
  whereIsMyDeposit: "Wo ist meine Einzahlung?",
  writeContract: "Schreiben",
  writeText:
    "Hier wird nichts unterschrieben: die Seite macht die Bytes, Sie unterschreiben sie. " +
    "Lesen Sie vorher die Quellen.",
  yes: "ja",
};
