"""The cases of lab 14 and what is right for them. The sandbox does not see it."""

from utils.labs import Judge
from utils.labs.lab14 import audits, deciding, defending, edges, evidence, pilots, plans

JUDGES = {
    "ex1": Judge(deciding.case_list, deciding.judge_decisions, deciding.case_words),
    "ex2": Judge(deciding.case_list, defending.judge_flips, deciding.case_words),
    "ex3": Judge(edges.edge_cases, edges.judge_edges, edges.edge_words),
    "ex4": Judge(audits.audit_cases, audits.judge_audits, audits.audit_words),
    "ex5": Judge(pilots.pilot_cases, pilots.judge_pilots, pilots.pilot_words),
    "ex6": Judge(plans.plan_cases, plans.judge_plan, plans.plan_words),
    "ex7": Judge(evidence.evidence_cases, evidence.judge_checklists, evidence.evidence_words),
}
