// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

import {Coin, PageRequest, PageResponse} from "./Types.sol";

/// @title Governance: proposals, deposits, votes.
/// @notice Whoever calls acts for itself: the first account of every changing function must be
/// `msg.sender`. What fails reverts with `Error(string)` and has changed nothing.
/// @custom:address 0x0000000000000000000000000000000000000805
interface IGov {
    /// @dev As `cosmos.gov.v1.VoteOption`.
    enum VoteOption {
        Unspecified,
        Yes,
        Abstain,
        No,
        NoWithVeto
    }

    /// @dev A part of a vote.
    struct WeightedVoteOption {
        VoteOption option;
        /// Decimal; the weights of a vote add up to 1.
        string weight;
    }

    /// @dev A vote.
    struct WeightedVote {
        uint64 proposalId;
        address voter;
        WeightedVoteOption[] options;
        string metadata;
    }

    /// @dev What an account deposited and has not got back.
    struct DepositData {
        uint64 proposalId;
        address depositor;
        Coin[] amount;
    }

    /// @dev Stake behind each option, atoken in decimal.
    struct TallyResultData {
        string yes;
        string abstain;
        string no;
        string noWithVeto;
    }

    /// @dev A proposal; times are Unix seconds, 0 for none.
    struct ProposalData {
        uint64 id;
        /// Type URLs.
        string[] messages;
        /// As `cosmos.gov.v1.ProposalStatus`.
        uint32 status;
        TallyResultData finalTallyResult;
        uint64 submitTime;
        uint64 depositEndTime;
        Coin[] totalDeposit;
        uint64 votingStartTime;
        uint64 votingEndTime;
        string metadata;
        string title;
        string summary;
        address proposer;
    }

    /// @dev Parameters of the module; times are nanoseconds, fractions decimals.
    struct Params {
        int64 votingPeriod;
        Coin[] minDeposit;
        int64 maxDepositPeriod;
        string quorum;
        string threshold;
        string vetoThreshold;
        string minInitialDepositRatio;
        string proposalCancelRatio;
        string proposalCancelDest;
        int64 expeditedVotingPeriod;
        string expeditedThreshold;
        Coin[] expeditedMinDeposit;
        bool burnVoteQuorum;
        bool burnProposalDepositPrevote;
        bool burnVoteVeto;
        string minDepositRatio;
    }

    /// @notice A proposal was made.
    event SubmitProposal(address indexed proposer, uint64 proposalId);

    /// @notice Its proposer took a proposal back.
    event CancelProposal(address indexed proposer, uint64 proposalId);

    /// @notice A deposit was made.
    event Deposit(address indexed depositor, uint64 proposalId, Coin[] amount);

    /// @notice An account voted.
    event Vote(address indexed voter, uint64 proposalId, uint8 option);

    /// @notice An account split its vote.
    event VoteWeighted(address indexed voter, uint64 proposalId, WeightedVoteOption[] options);

    /// @notice Makes a proposal.
    /// @param jsonProposal UTF-8 of `{"messages": [{"@type": ..., ...}], "title", "summary", "metadata",
    /// "expedited"}`, as files for `tx gov submit-proposal` have it
    /// @param deposit its first deposit; may be empty as far as the parameters allow
    function submitProposal(address proposer, bytes calldata jsonProposal, Coin[] calldata deposit)
        external
        returns (uint64 proposalId);

    /// @notice Takes a proposal of the sender back; a part of the deposits is the price.
    function cancelProposal(address proposer, uint64 proposalId) external returns (bool success);

    /// @notice Adds coins of the sender to a proposal's deposits.
    function deposit(address depositor, uint64 proposalId, Coin[] calldata amount) external returns (bool success);

    /// @notice Votes, in place of what the sender has voted before.
    function vote(address voter, uint64 proposalId, VoteOption option, string calldata metadata)
        external
        returns (bool success);

    /// @notice Votes with several options.
    function voteWeighted(
        address voter,
        uint64 proposalId,
        WeightedVoteOption[] calldata options,
        string calldata metadata
    ) external returns (bool success);

    /// @notice The vote of an account.
    function getVote(uint64 proposalId, address voter) external view returns (WeightedVote memory vote);

    /// @notice Votes on a proposal.
    function getVotes(uint64 proposalId, PageRequest calldata pagination)
        external
        view
        returns (WeightedVote[] memory votes, PageResponse memory pageResponse);

    /// @notice What an account has deposited on a proposal.
    function getDeposit(uint64 proposalId, address depositor) external view returns (DepositData memory deposit);

    /// @notice Deposits on a proposal.
    function getDeposits(uint64 proposalId, PageRequest calldata pagination)
        external
        view
        returns (DepositData[] memory deposits, PageResponse memory pageResponse);

    /// @notice Stake behind each option: as counted, or as it would be now.
    function getTallyResult(uint64 proposalId) external view returns (TallyResultData memory tallyResult);

    /// @notice A proposal.
    function getProposal(uint64 proposalId) external view returns (ProposalData memory proposal);

    /// @notice Proposals with a status (0 for any), that an account voted or deposited on (zero for any).
    function getProposals(
        uint32 proposalStatus,
        address voter,
        address depositor,
        PageRequest calldata pagination
    ) external view returns (ProposalData[] memory proposals, PageResponse memory pageResponse);

    /// @notice Parameters of the module.
    function getParams() external view returns (Params memory params);

    /// @notice The constitution: there is none, and the text is empty.
    function getConstitution() external view returns (string memory constitution);
}
