use super::super::lesson::ITEMS;
use super::*;
use crate::oal::features::FEATURES;
use crate::oal::tree::Node as TreeNode;
use lasthop_signals::{ChannelTime, FlowId, HopReport, Node, SackRanges, Segment, StationReport, Way};

const STATION: Node = Node(1);

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn state(now: Time) -> StationState {
    StationState { now, station: STATION, drains_in: Span::ZERO, drops: 0 }
}

fn hop(ms: u64, backlog: u32) -> Signal {
    let station = StationReport { backlog_packets: backlog, ..StationReport::unseen(STATION) };
    let channel = ChannelTime { active: Span::from_millis(ms), ..ChannelTime::default() };
    Signal::Hop(HopReport { channel, stations: vec![station], ..HopReport::default() })
}

fn data(number: u64) -> Signal {
    let (flow, seq, sack) = (FlowId(1), number as u32 * 1000, SackRanges::EMPTY);
    Signal::Segment(Segment { flow, station: STATION, way: Way::Down, seq, len: 1000, count: 1, ack: 0, sack })
}

/// A world in which a long queue loses one segment in five, and a short one none: which it is changes every 400 ms. Lost segments
/// are repaired 300 ms later. `tight` says when nothing is lost although the queue is long.
fn live(learned: &mut Learned, from: u64, until: u64, tight: impl Fn(u64) -> bool) {
    for ms in (from..until).step_by(4) {
        let now = at(ms);
        let backlog = |ms: u64| if ms / 400 % 2 == 1 { 900 } else { 10 };
        learned.sense(now, &hop(ms, backlog(ms)));
        learned.acted(tight(ms));
        (0..10).for_each(|n| learned.sense(now, &data(ms / 4 * 10 + n)));
        let past = ms.saturating_sub(300);
        if ms > 300 && backlog(past) > 100 && !tight(past) {
            [3, 7].into_iter().for_each(|n| learned.sense(now, &data(past / 4 * 10 + n)));
        }
    }
}

fn learned(learning: Learning) -> Learned {
    Learned::new(learning, BacklogThreshold::new(Span::from_millis(5)))
}

/// What it says of a long queue and of a short one.
fn says(learned: &mut Learned, ms: u64) -> [LossClass; 2] {
    [900, 10].map(|backlog| {
        // Shown, and taken back: the history is that of before.
        let mut copy = learned.clone();
        copy.sense(at(ms), &hop(ms, backlog));
        copy.predict(&state(at(ms)))
    })
}

fn tree(version: u64, classes: u8) -> Arc<Tree> {
    let feature = FEATURES.iter().position(|feature| feature.name == "backlog").expect("it is one") as u8;
    let split = TreeNode::Split { feature, threshold: 100.0, left: 1, right: 2, missing_left: true };
    let nodes = vec![split, TreeNode::Leaf(LossClass::Good), TreeNode::Leaf(LossClass::Bad)];
    Arc::new(Tree::new(version, classes, nodes).expect("valid"))
}

#[test]
fn it_learns_within_seconds_what_a_long_queue_means() {
    let mut learned = learned(Learning::default());
    assert!(learned.wants_segments());
    live(&mut learned, 0, 8000, |_| false);
    assert_eq!(says(&mut learned, 8000), [LossClass::Bad, LossClass::Good]);
    let version = learned.tree(at(8000)).expect("in force").version();
    live(&mut learned, 8000, 10_000, |_| false);
    assert_eq!(learned.tree(at(10_000)).expect("in force").version(), version + 2, "every second");
    assert!(learned.learner().items().count() <= ITEMS);
}

#[test]
fn what_acting_has_prevented_is_not_learned() {
    // Tight whenever the queue is long, but for the seconds in which it abstains.
    let learning = Learning { explore: 0.3, ..Learning::default() };
    let mut learned = learned(learning);
    // The first sequence number is zero.
    let tight = |ms: u64| ms / 400 % 2 == 1 && !learning.explores(0, at(ms));
    live(&mut learned, 0, 60_000, tight);
    assert!(learned.learner().items().all(|item| !item.acted));
    assert_eq!(says(&mut learned, 60_000), [LossClass::Bad, LossClass::Good]);
}

#[test]
fn it_abstains_for_its_share_of_time_in_slots() {
    let explores = |explore, seed, salt, ms| Learning { explore, seed, ..Learning::default() }.explores(salt, at(ms));
    let share =
        |explore| (0..20_000).filter(|slot| explores(explore, 5, 0, 2000 * slot + 77)).count() as f64 / 20_000.0;
    assert_eq!((share(0.0), share(1.0)), (0.0, 1.0));
    assert!((share(0.05) - 0.05).abs() < 0.005, "{}", share(0.05));
    assert!((0..100).all(|slot| explores(0.5, 0, 0, 2000 * slot) == explores(0.5, 0, 0, 2000 * slot + 1999)));
    for (seed, salt) in [(1, 0), (0, 1)] {
        assert!((0..100).any(|slot| explores(0.5, 0, 0, 2000 * slot) != explores(0.5, seed, salt, 2000 * slot)));
    }
}

#[test]
fn it_abstains_at_first_until_it_has_a_tree_or_time_is_up() {
    let abstained = |with_losses: bool| {
        let mut learned = learned(Learning { explore: 1e-9, ..Learning::default() });
        let mut until = 0;
        for second in 0..15 {
            live(&mut learned, second * 1000, (second + 1) * 1000, |_| !with_losses);
            until = if learned.abstains(at(second * 1000 + 999)) { second + 1 } else { until };
        }
        until
    };
    assert!((2..=6).contains(&abstained(true)), "{}", abstained(true));
    assert_eq!(abstained(false), 10);
    let mut never = learned(Learning { explore: 0.0, ..Learning::default() });
    never.sense(at(0), &hop(0, 10));
    assert!(!never.abstains(at(0)));
}

/// A school in the same process that never trains by itself, and what it was told.
#[derive(Clone, Default)]
struct Beside(Arc<std::sync::Mutex<Table>>);

#[derive(Default)]
struct Table {
    lessons: Vec<Lesson>,
    trees: Vec<(Time, Vec<u8>)>,
    refused: Vec<Refused>,
    decides: Vec<bool>,
}

impl Elsewhere for Beside {
    fn hand(&mut self, lesson: &Lesson) {
        self.0.lock().expect("one thread").lessons.push(*lesson);
    }

    fn tree(&mut self, _: Time) -> Option<(Time, Vec<u8>)> {
        self.0.lock().expect("one thread").trees.pop()
    }

    fn refused(&mut self, _: Time, why: &Refused) {
        self.0.lock().expect("one thread").refused.push(why.clone());
    }

    fn decides(&mut self, _: Time, does: bool, _: Span) {
        self.0.lock().expect("one thread").decides.push(does);
    }
}

#[test]
fn an_external_tree_decides_until_too_old_and_nonsense_never() {
    let beside = Beside::default();
    let (learning, fallback) =
        (Learning { explore: 0.0, ..Learning::default() }, BacklogThreshold::new(Span::from_millis(5)));
    let mut learned = Learned::trained_elsewhere(learning, fallback, Box::new(beside.clone()));
    assert!(learned.wants_segments());
    live(&mut learned, 0, 6000, |_| false);
    let mut school = crate::oal::lesson::School::new(Trainer::new(Growth::default()));
    let lessons = beside.0.lock().expect("one thread").lessons.clone();
    assert!(lessons.len() > 50 && learned.learner().items().count() == 0, "handed on: {}", lessons.len());
    lessons.iter().for_each(|lesson| school.hear(*lesson));
    let (newest, tree) = school.train(9).expect("two classes");
    // Of the future nothing is believed.
    beside.0.lock().expect("one thread").trees = vec![(Time::MAX, tree.encode()), (newest, b"nonsense".to_vec())];
    live(&mut learned, 6000, 6400, |_| false);
    assert_eq!(learned.tree(at(6400)).map(|tree| tree.version()), Some(9));
    assert_eq!(says(&mut learned, 6400), [LossClass::Bad, LossClass::Good]);
    assert!(matches!(beside.0.lock().expect("one thread").refused[..], [Refused::Invalid(_)]));
    let model = learned.model(at(6400)).expect("it learns");
    assert_eq!((model.decider, model.version, model.items), (Decider::Learned, Some(9), lessons.len() as u64 + 8));
    // Its newest item is of the time before the repair of 1.5 s.
    assert!(learned.tree(at(4000 + 60_000)).is_some());
    assert!(learned.tree(at(6400 + 60_001)).is_none(), "too old");
    // A listener hears of it once.
    let mut later = learned.clone();
    [70_000, 70_004].into_iter().for_each(|ms| later.sense(at(ms), &hop(ms, 10)));
    assert_eq!(beside.0.lock().expect("one thread").decides, [true, false]);
    let model = later.model(at(70_004)).expect("it learns");
    assert!(model.decider == Decider::Rule && model.age > Some(model.age_limit), "{model:?}");
    // A fixed tree is none that ages.
    let threshold = learned.predict(&state(at(80_000)));
    let mut fixed = learned.clone().with_fixed(Arc::new(tree));
    fixed.sense(at(80_000), &hop(80_000, 900));
    assert_eq!((threshold, fixed.predict(&state(at(80_000)))), (LossClass::Good, LossClass::Bad));
}

#[test]
fn old_foreign_and_single_class_trees_are_refused() {
    let mut learned = Learned::taught(Learning::default(), BacklogThreshold::new(Span::from_millis(5)));
    assert!(!learned.wants_segments() && !learned.abstains(at(0)));
    assert_eq!(learned.adopt(at(0), tree(5, 0b0001)), Err(Refused::OneClass(1)));
    assert_eq!(learned.adopt(at(0), tree(5, 0b1001)), Ok(()));
    assert_eq!(learned.adopt(at(0), tree(5, 0b1001)), Err(Refused::Old { got: 5, in_force: 5 }));
    let mut foreign = tree(6, 0b1001).encode();
    foreign[5] ^= 1;
    assert!(matches!(learned.adopt_bytes(at(0), &foreign), Err(Refused::Invalid(TreeError::Schema(_)))));
    assert_eq!(learned.tree(at(0)).expect("stays").version(), 5);
    // A newer number does not make what it knows newer.
    assert_eq!(learned.adopt(at(1), tree(6, 0b1001)), Ok(()));
    assert_eq!(learned.adopt(at(0), tree(7, 0b1001)), Err(Refused::Behind(Span::from_millis(1))));
    assert_eq!(learned.adopt_bytes(at(1), &tree(7, 0b1001).encode()), Ok(()));
    assert_eq!(says(&mut learned, 1), [LossClass::Bad, LossClass::Good]);
}

#[test]
fn the_threshold_decides_without_a_tree_and_after_its_time() {
    let mut learned = Learned::taught(Learning::default(), BacklogThreshold::new(Span::from_millis(5)));
    // The queue is long, and drains at once: the threshold says good, the tree says bad.
    assert_eq!(says(&mut learned, 0)[0], LossClass::Good);
    assert_eq!(learned.adopt(at(0), tree(1, 0b1001)), Ok(()));
    assert_eq!(says(&mut learned, 60_000)[0], LossClass::Bad);
    assert_eq!(says(&mut learned, 60_001)[0], LossClass::Good);
    assert_eq!(learned.predict(&StationState { station: Node(9), ..state(at(0)) }), LossClass::Good, "not reported");
}

#[test]
fn a_class_holds_for_its_horizon_and_the_worst_counts() {
    let feature = |name: &str| FEATURES.iter().position(|feature| feature.name == name).expect("it is one") as u8;
    let split = |threshold, left, right| TreeNode::Split {
        feature: feature("backlog"),
        threshold,
        left,
        right,
        missing_left: true,
    };
    let leaf = |class| TreeNode::Leaf(class);
    let nodes = vec![
        split(100.0, 1, 2),
        leaf(LossClass::Good),
        split(500.0, 3, 4),
        leaf(LossClass::Poor),
        leaf(LossClass::Bad),
    ];
    let mut learned = Learned::taught(Learning::default(), BacklogThreshold::new(Span::from_millis(5)));
    learned.adopt(at(0), Arc::new(Tree::new(1, 0b1101, nodes).expect("valid"))).expect("a first tree");
    let mut says = |ms: u64| {
        // Bad at first, Poor at 40 ms, Good from then on.
        let backlog = [(0, 900), (40, 300)].iter().find(|(when, _)| *when == ms).map_or(10, |(_, backlog)| *backlog);
        learned.sense(at(ms), &hop(ms, backlog));
        learned.predict(&state(at(ms)))
    };
    for ms in (0..200).step_by(4) {
        let expected = match ms {
            0..50 => LossClass::Bad,
            50..90 => LossClass::Poor,
            _ => LossClass::Good,
        };
        assert_eq!(says(ms), expected, "{ms} ms");
    }
}

#[test]
fn explored_items_are_kept_and_the_store_is_filled() {
    let mut learned = learned(Learning { explore: 1e-9, ..Learning::default() });
    live(&mut learned, 0, 8000, |_| false);
    let before = learned.learner().store.explored.len();
    assert!(before > 0 && !learned.learner().store.calm.is_empty());
    // Twenty items a second: more than the store takes.
    for ms in (8000..600_000).step_by(4) {
        learned.sense(at(ms), &hop(ms, 10));
        (0..10).for_each(|n| learned.sense(at(ms), &data(ms / 4 * 10 + n)));
    }
    assert_eq!(learned.learner().store.explored.len(), before);
    assert_eq!(learned.learner().items().count(), ITEMS);
}

#[test]
fn seconds_in_which_all_is_well_leave_the_tree_in_force() {
    let mut learned = learned(Learning { explore: 0.0, ..Learning::default() });
    live(&mut learned, 0, 8000, |_| false);
    let version = learned.tree(at(8000)).expect("in force").version();
    // Nothing enters, so that nothing is learned; then all that is remembered is good.
    for ms in (8000..540_000).step_by(4) {
        learned.sense(at(ms), &hop(ms, 10));
        (0..10).for_each(|n| learned.sense(at(ms), &data(ms / 4 * 10 + n)));
    }
    assert!(learned.learner().items().all(|item| item.class() == LossClass::Good));
    let last = learned.tree(at(540_000)).map(|tree| tree.version());
    assert!(last.is_some_and(|last| last >= version), "{last:?}");
    assert_eq!(learned.tree(at(600_000)), None, "its items are too old");
}
