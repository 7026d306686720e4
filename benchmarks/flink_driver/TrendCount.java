import java.io.DataInputStream;
import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Counts the matches of a sequence pattern in one window with Flink CEP, on one core.
 *
 * <p>Arguments: a file of events (little-endian: ints of a key, and of a bit for each state that the event can be bound
 * to; doubles of what it has as the earlier of two neighbours, and as the later), the pattern ("1" an event, "+" a Kleene
 * closure of one, ">" one in which what the earlier event has is more, brackets a Kleene closure of all, such as
 * "(1+1)"), the semantics (any, next, contiguous), and the seconds after which it gives up. Prints the seconds from the
 * first event to the last result, the matches, and the most bytes of heap in use.
 */
public final class TrendCount {
    private static final AtomicLong matches = new AtomicLong();
    private static volatile long begun;
    private static int[] keys;
    private static int[] states;
    private static double[] earlier;
    private static double[] later;

    public static void main(String[] arguments) throws Exception {
        read(arguments[0]);
        count(arguments[1], arguments[2], Math.min(keys.length, 100)); // loads the classes
        matches.set(0);
        begun = 0;
        double most = Double.parseDouble(arguments[3]);
        Thread watch = new Thread(() -> watch(most));
        watch.setDaemon(true);
        watch.start();
        count(arguments[1], arguments[2], keys.length);
        print();
    }

    private static double seconds() {
        return begun == 0 ? 0 : (System.nanoTime() - begun) / 1e9;
    }

    private static void print() {
        System.out.println(
                "{\"seconds\": " + seconds() + ", \"matches\": " + matches.get() + ", \"heap\": " + heap.get() + "}");
    }

    private static void read(String file) throws Exception {
        try (DataInputStream input = new DataInputStream(new FileInputStream(file))) {
            ByteBuffer bytes = ByteBuffer.wrap(input.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
            keys = new int[bytes.capacity() / 24];
            states = new int[keys.length];
            earlier = new double[keys.length];
            later = new double[keys.length];
            for (int at = 0; at < keys.length; at++) {
                keys[at] = bytes.getInt();
                states[at] = bytes.getInt();
                earlier[at] = bytes.getDouble();
                later[at] = bytes.getDouble();
            }
        }
    }

    private static void count(String elements, String semantics, int size) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.getConfig().enableObjectReuse();
        TypeInformation<Tuple2<Integer, Integer>> type = Types.TUPLE(Types.INT, Types.INT);
        GeneratorFunction<Long, Tuple2<Integer, Integer>> event = at -> {
            if (begun == 0) {
                begun = System.nanoTime();
            }
            return Tuple2.of(keys[at.intValue()], at.intValue());
        };
        DataGeneratorSource<Tuple2<Integer, Integer>> source =
                new DataGeneratorSource<>(event, size, RateLimiterStrategy.noOp(), type);
        CEP.pattern(
                        environment
                                .fromSource(source, WatermarkStrategy.noWatermarks(), "events")
                                .keyBy(one -> one.f0, Types.INT),
                        pattern(elements, semantics))
                .inProcessingTime()
                .flatSelect(new Count(), Types.LONG)
                .executeAndCollect()
                .forEachRemaining(nothing -> {});
    }

    private static Pattern<Tuple2<Integer, Integer>, ?> pattern(String text, String semantics) {
        if (!text.startsWith("(")) {
            return sequence(text, semantics);
        }
        Pattern<Tuple2<Integer, Integer>, ?> once = sequence(text.substring(1, text.length() - 1), semantics);
        return loop(Pattern.begin(once, AfterMatchSkipStrategy.noSkip()).oneOrMore(), semantics);
    }

    private static Pattern<Tuple2<Integer, Integer>, Tuple2<Integer, Integer>> sequence(
            String elements, String semantics) {
        Pattern<Tuple2<Integer, Integer>, Tuple2<Integer, Integer>> made = null;
        for (int at = 0; at < elements.length(); at++) {
            String name = "s" + at;
            if (made == null) {
                made = Pattern.begin(name, AfterMatchSkipStrategy.noSkip());
            } else if (semantics.equals("any")) {
                made = made.followedByAny(name);
            } else if (semantics.equals("next")) {
                made = made.followedBy(name);
            } else {
                made = made.next(name);
            }
            made = made.where(bound(at));
            if (elements.charAt(at) == '1') {
                continue;
            }
            if (elements.charAt(at) == '>') {
                made = made.where(new Less(name));
            }
            made = loop(made.oneOrMore(), semantics);
            if (semantics.equals("next") && at + 1 < elements.length()) {
                made = made.greedy().until(bound(at + 1)); // or it would skip what the closure or the next could take
            }
        }
        return made;
    }

    private static <F extends Tuple2<Integer, Integer>> Pattern<Tuple2<Integer, Integer>, F> loop(
            Pattern<Tuple2<Integer, Integer>, F> made, String semantics) {
        return switch (semantics) {
            case "any" -> made.allowCombinations();
            case "contiguous" -> made.consecutive();
            default -> made;
        };
    }

    private static SimpleCondition<Tuple2<Integer, Integer>> bound(int state) {
        final int bit = 1 << state;
        return SimpleCondition.of(one -> (states[one.f1] & bit) != 0);
    }

    /** What the event has as the later one is less than what its neighbour before it has as the earlier one. */
    private static final class Less extends IterativeCondition<Tuple2<Integer, Integer>> {
        private final String name;

        Less(String name) {
            this.name = name;
        }

        @Override
        public boolean filter(Tuple2<Integer, Integer> one, Context<Tuple2<Integer, Integer>> matched)
                throws Exception {
            Tuple2<Integer, Integer> before = null;
            for (Tuple2<Integer, Integer> event : matched.getEventsForPattern(name)) {
                before = event;
            }
            return before == null || earlier[before.f1] > later[one.f1];
        }
    }

    /** Counts a match, and gives nothing on. */
    private static final class Count implements PatternFlatSelectFunction<Tuple2<Integer, Integer>, Long> {
        @Override
        public void flatSelect(Map<String, List<Tuple2<Integer, Integer>>> match, Collector<Long> out) {
            matches.incrementAndGet();
        }
    }

    private static final AtomicLong heap = new AtomicLong();

    private static void watch(double most) {
        Runtime runtime = Runtime.getRuntime();
        while (true) {
            if (seconds() > most) {
                print();
                runtime.halt(0);
            }
            heap.accumulateAndGet(runtime.totalMemory() - runtime.freeMemory(), Math::max);
            try {
                Thread.sleep(20);
            } catch (InterruptedException stop) {
                return;
            }
        }
    }
}
